"""Builds a local asset root for Isaac Lab from files inside the installed wheels, without a download.

    python -m tasks.assets DIR

Isaac Lab looks for its robots below ``ISAACSIM_ASSET_ROOT``. Its wheel contains flattened stages of its own tasks as
test data; the robots are cut out of these. A stand-in, which the manifest names, replaces what no wheel contains. A
workload with stand-ins is another workload, so the manifest's hash is part of every result's identity.
"""

import hashlib
import importlib.metadata
import json
import re
import shutil
import sys
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

from suite.schema.record import Case

MANIFEST_FORMAT: Final = 1
ROBOTS: Final = "Isaac/Robots_Multiphysics/ShadowRobot/ShadowHandMultiPhysics_v0/right_hand"
CARTPOLE: Final = "Isaac/IsaacLab/Robots/Classic/Cartpole/cartpole.usd"
HAND: Final = f"{ROBOTS}/right_hand.usda"
CUBE: Final = "Isaac/Props/Blocks/DexCube/dex_cube_instanceable.usd"
CUBE_TEXTURE: Final = "Isaac/Props/Blocks/DexCube/Materials/dex_cube_mod.png"
ANT: Final = "Isaac/Robots/IsaacSim/Ant/ant_instanceable.usd"
GROUND: Final = "Isaac/IsaacLab/Environments/Grid/default_ground_plane_checker_v1/default_ground_plane.usda"
CUBE_COLOURS: Final = ((220, 60, 60), (60, 180, 75), (60, 90, 220), (240, 200, 40), (200, 80, 200), (60, 200, 200))
FINGERS: Final = ("FF", "MF", "RF", "LF")
type Attributes = Sequence[tuple[str, str, object]]  # name, type of USD, value
TENDON: Final[Attributes] = (
    ("mjc:type", "Token", "fixed"),
    ("mjc:path:indices", "IntArray", [0, 1]),
    ("mjc:path:coef", "DoubleArray", [1.0, 1.0]),
)
ACTUATOR: Final[Attributes] = (  # force = command - tendon length; Isaac Lab's actuator sets the gains at run time
    ("mjc:gainPrm", "DoubleArray", [1.0] + [0.0] * 9),
    ("mjc:biasPrm", "DoubleArray", [0.0, -1.0] + [0.0] * 8),
    ("mjc:gainType", "Token", "fixed"),
    ("mjc:biasType", "Token", "affine"),
    ("mjc:ctrlLimited", "Token", "true"),
    ("mjc:ctrlRange:min", "Double", 0.0),  # J1 + J2 [rad]; each joint reaches 90 degrees
    ("mjc:ctrlRange:max", "Double", 3.1415),
)


@dataclass(frozen=True, kw_only=True)
class Asset:
    """A file of the asset root: where it comes from, and how it differs from NVIDIA's own."""

    path: str
    origin: str
    stand_in: str | None


ASSETS: Final = (
    Asset(path=CARTPOLE, origin="isaaclab wheel, stage of Isaac-Cartpole-Camera-Direct", stand_in=None),
    Asset(
        path=HAND,
        origin="isaaclab wheel, stage of Isaac-Reorient-Cube-Shadow-Camera-Direct",
        stand_in="the four finger tendons are authored here as MuJoCo tendons with position actuators; "
        "the flattened stage has them as PhysX schemas only",
    ),
    Asset(path=CUBE, origin="isaaclab wheel, stage of Isaac-Reorient-Cube-Shadow-Camera-Direct", stand_in=None),
    Asset(path=CUBE_TEXTURE, origin="drawn by labscale", stand_in="six coloured faces in place of NVIDIA's texture"),
    Asset(
        path=ANT,
        origin="newton wheel, examples/assets/ant.usda",
        stand_in="Newton's Ant in place of NVIDIA's; its mass and joint limits are under facts",
    ),
    Asset(path=GROUND, origin="authored by labscale", stand_in="a bare collision plane without the checkered visual"),
)


def build(root: Path) -> Path:
    """Write every asset and ``manifest.json`` below ``root`` and return the manifest's path."""
    import newton

    site = Path(newton.__file__).parent.parent
    stages = site / "isaaclab/source/isaaclab_tasks/test/golden_stages"
    stage_of = "registered_tasks_{}/default_physics-default_renderer-stage.usda"
    cartpole = stages / stage_of.format("Isaac-Cartpole-Camera-Direct")
    shadow = stages / stage_of.format("Isaac-Reorient-Cube-Shadow-Camera-Direct")
    cut_out(cartpole, "/World/envs/env_0/Robot", root / CARTPOLE, "cartpole")
    cut_out(shadow, "/World/envs/env_0/Robot", root / HAND, "right_hand")
    cut_out(shadow, "/World/envs/env_0/object", root / CUBE, "object")
    tendons = author_tendons(root / HAND)
    draw_cube_texture(root / CUBE_TEXTURE)
    (root / ANT).parent.mkdir(parents=True, exist_ok=True)
    shutil.copyfile(site / "newton/examples/assets/ant.usda", root / ANT)
    author_ground(root / GROUND)
    manifest = root / "manifest.json"
    manifest.write_text(json.dumps(manifest_of(root, tendons), indent=1, sort_keys=True) + "\n", encoding="utf-8")
    return manifest


def manifest_of(root: Path, tendons: dict[str, list[str]]) -> dict[str, Any]:
    """Return the manifest: every file with hash, origin and stand-in, and facts that a test checks."""
    return {
        "format": MANIFEST_FORMAT,
        "sources": {
            name: importlib.metadata.version(name) for name in ("isaaclab", "newton", "usd-exchange", "pillow")
        },
        "files": {
            asset.path: {
                "sha256": hashlib.sha256((root / asset.path).read_bytes()).hexdigest(),
                "origin": asset.origin,
                "stand_in": asset.stand_in,
            }
            for asset in ASSETS
        },
        "facts": {"ant": ant_facts(root / ANT), "hand": {"tendons": tendons}},
    }


def ant_facts(path: Path) -> dict[str, Any]:
    """Total mass [kg] and joint limits [degree] that the Ant's USD file declares or implies."""
    import newton

    builder = newton.ModelBuilder()
    builder.add_usd(str(path))
    limits = list(zip(builder.joint_limit_lower, builder.joint_limit_upper, strict=True))
    degrees = 180.0 / 3.141592653589793
    return {
        "mass_kg": round(float(sum(builder.body_mass)), 6),
        "joint_limits_deg": [[round(float(limit) * degrees, 3) for limit in hinge] for hinge in limits[-8:]],
    }


def cut_out(stage: Path, prim: str, out: Path, name: str) -> None:
    """Copy one prim of a flattened stage, with the prototypes it references, into a layer of its own."""
    from pxr import Sdf

    source = Sdf.Layer.FindOrOpen(str(stage))
    out.parent.mkdir(parents=True, exist_ok=True)
    layer = Sdf.Layer.CreateAnonymous(".usda")
    Sdf.CopySpec(source, Sdf.Path(prim), layer, Sdf.Path(f"/{name}"))
    for prototype in sorted(prototypes_below(source, Sdf.Path(prim))):
        Sdf.CopySpec(source, prototype, layer, prototype)
    root = layer.GetPrimAtPath(f"/{name}")
    for spec in [spec for spec in root.properties if spec.name.startswith("xformOp")]:
        root.RemoveProperty(spec)  # the place of env_0 in the flattened scene
    layer.defaultPrim = name
    layer.pseudoRoot.SetInfo("metersPerUnit", 1.0)
    layer.pseudoRoot.SetInfo("upAxis", "Z")
    text = layer.ExportToString().replace(prim, f"/{name}")
    text = re.sub(r"@https://[^@]*/dex_cube_mod\.png@", "@./Materials/dex_cube_mod.png@", text)
    out.write_text(text, encoding="utf-8")


def prototypes_below(layer: Any, path: Any) -> set[Any]:
    """Paths of all prims of the layer that ``path`` references, directly or through others."""
    prototypes: set[Any] = set()
    waiting = [path]
    while waiting:
        spec = layer.GetPrimAtPath(waiting.pop())
        if spec is None:
            continue
        waiting.extend(child.path for child in spec.nameChildren)
        for items in ("prependedItems", "appendedItems", "explicitItems", "addedItems"):
            for reference in getattr(spec.referenceList, items):
                if not reference.assetPath and reference.primPath and reference.primPath not in prototypes:
                    prototypes.add(reference.primPath)
                    waiting.append(reference.primPath)
    return prototypes


def draw_cube_texture(path: Path) -> None:
    """Draw six faces of 32x32 pixels, each in its own colour with a white square, so that a turn is visible."""
    from PIL import Image, ImageDraw

    path.parent.mkdir(parents=True, exist_ok=True)
    image = Image.new("RGB", (96, 64))
    draw = ImageDraw.Draw(image)
    for face, colour in enumerate(CUBE_COLOURS):
        x, y = face % 3 * 32, face // 3 * 32
        draw.rectangle((x, y, x + 31, y + 31), fill=colour)
        draw.rectangle((x + 10, y + 10, x + 20, y + 20), fill=(255, 255, 255))
    image.save(path)


def author_ground(path: Path) -> None:
    from pxr import Usd, UsdGeom, UsdPhysics

    path.parent.mkdir(parents=True, exist_ok=True)
    stage = Usd.Stage.CreateInMemory()
    UsdGeom.SetStageUpAxis(stage, "Z")
    UsdGeom.SetStageMetersPerUnit(stage, 1)
    stage.SetDefaultPrim(UsdGeom.Xform.Define(stage, "/Root").GetPrim())
    plane = UsdGeom.Plane.Define(stage, "/Root/CollisionPlane")
    plane.CreateAxisAttr("Z")
    UsdPhysics.CollisionAPI.Apply(plane.GetPrim())
    path.write_text(stage.GetRootLayer().ExportToString(), encoding="utf-8")


# ---- the Shadow Hand's four finger tendons, authored for MuJoCo ----
# The two outer joints of each finger but the thumb are driven as one: J0 = J1 + J2. The flattened stage declares that
# with PhysX schemas, which Newton does not import. So a fixed tendon and a position actuator of the same meaning are
# added.


def author_tendons(path: Path) -> dict[str, list[str]]:
    """Add the tendons to the layer at ``path``; return tendon name -> joints whose angles it adds up."""
    from pxr import Sdf

    layer = Sdf.Layer.FindOrOpen(str(path))
    layer.Reload(force=True)
    joints: dict[str, Any] = {}

    def note_joint(prim_path: Any) -> None:
        spec = layer.GetPrimAtPath(prim_path)
        if spec is not None and spec.typeName == "PhysicsRevoluteJoint":
            joints[spec.name] = spec.path

    def author(kind: str, name: str, target: str, targets: list[Any], attributes: Attributes) -> Any:
        spec = Sdf.PrimSpec(layer.GetPrimAtPath("/right_hand/Physics"), name, Sdf.SpecifierDef, kind)
        Sdf.RelationshipSpec(spec, target).targetPathList.explicitItems = targets
        for attribute, value_type, value in attributes:
            Sdf.AttributeSpec(spec, attribute, getattr(Sdf.ValueTypeNames, value_type)).default = value
        return spec

    layer.Traverse("/right_hand", note_joint)
    tendons: dict[str, list[str]] = {}
    for finger in FINGERS:
        names = [f"rh_{finger}J2", f"rh_{finger}J1"]
        tendon = author("MjcTendon", f"rh_{finger}J0", "mjc:path", [joints[name] for name in names], TENDON)
        author("MjcActuator", f"rh_A_{finger}J0", "mjc:target", [tendon.path], ACTUATOR)
        tendons[tendon.name] = names
    layer.Save()
    return tendons


@contextmanager
def missing_asset_named(case: Case, asset_root: str | None) -> Iterator[None]:
    """Replace Isaac Lab's error about a missing file by one that names the asset and where to get it.

    Raises:
        FileNotFoundError: a file is missing; reworded if it is one that the offline assets lack.
    """
    try:
        yield
    except FileNotFoundError as error:
        _, is_asset, name = str(error).partition(asset_root or "\0")
        if case.assets != "offline" or not is_asset:
            raise
        raise FileNotFoundError(
            f"{case.task} needs {name.strip('/')}, which the offline assets do not have: they cover labscale's own "
            "tasks only. Use NVIDIA's assets with --assets official, from the internet or from the folder that "
            "ISAACSIM_ASSET_ROOT names."
        ) from error


def main(argv: list[str]) -> int:
    if len(argv) != 2:  # noqa: PLR2004
        print("usage: python -m tasks.assets DIR", file=sys.stderr)
        return 2
    manifest = build(Path(argv[1]))
    print(f"asset root {manifest.parent}, manifest {hashlib.sha256(manifest.read_bytes()).hexdigest()[:12]}")
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv))
