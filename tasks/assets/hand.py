"""The Shadow Hand's four finger tendons, authored for MuJoCo.

The two outer joints of each finger but the thumb are driven as one: J0 = J1 + J2. The flattened stage declares that
with PhysX schemas, which Newton does not import. So a fixed tendon and a position actuator of the same meaning are
added.
"""

from collections.abc import Iterator
from pathlib import Path
from typing import Any, Final

FINGERS: Final = ("FF", "MF", "RF", "LF")
COMMAND_RANGE_RAD: Final = (0.0, 3.1415)  # of J1 + J2; each joint reaches 90 degrees


def author_tendons(path: Path) -> dict[str, list[str]]:
    """Add the tendons to the layer at ``path``; return tendon name -> joints whose angles it adds up."""
    from pxr import Sdf

    layer = Sdf.Layer.FindOrOpen(str(path))
    layer.Reload(force=True)
    joints = {
        spec.name: spec.path
        for spec in _prims(layer.GetPrimAtPath("/right_hand"))
        if spec.typeName == "PhysicsRevoluteJoint"
    }
    physics = layer.GetPrimAtPath("/right_hand/Physics")
    tendons: dict[str, list[str]] = {}
    for finger in FINGERS:
        names = [f"rh_{finger}J2", f"rh_{finger}J1"]
        tendon = _author_tendon(physics, f"rh_{finger}J0", [joints[name] for name in names])
        _author_position_actuator(physics, f"rh_A_{finger}J0", tendon.path)
        tendons[tendon.name] = names
    layer.Save()
    return tendons


def _prims(spec: Any) -> Iterator[Any]:
    yield spec
    for child in spec.nameChildren:
        yield from _prims(child)


def _author_tendon(parent: Any, name: str, joint_paths: list[Any]) -> Any:
    from pxr import Sdf

    types = Sdf.ValueTypeNames
    tendon = Sdf.PrimSpec(parent, name, Sdf.SpecifierDef, "MjcTendon")
    _set(tendon, "mjc:type", types.Token, "fixed")
    Sdf.RelationshipSpec(tendon, "mjc:path").targetPathList.explicitItems = joint_paths
    _set(tendon, "mjc:path:indices", types.IntArray, list(range(len(joint_paths))))
    _set(tendon, "mjc:path:coef", types.DoubleArray, [1.0] * len(joint_paths))
    return tendon


def _author_position_actuator(parent: Any, name: str, target: Any) -> None:
    """Force = command - tendon length; Isaac Lab's actuator model sets the gains at run time."""
    from pxr import Sdf

    types = Sdf.ValueTypeNames
    motor = Sdf.PrimSpec(parent, name, Sdf.SpecifierDef, "MjcActuator")
    Sdf.RelationshipSpec(motor, "mjc:target").targetPathList.explicitItems = [target]
    _set(motor, "mjc:gainPrm", types.DoubleArray, [1.0] + [0.0] * 9)
    _set(motor, "mjc:biasPrm", types.DoubleArray, [0.0, -1.0] + [0.0] * 8)
    _set(motor, "mjc:gainType", types.Token, "fixed")
    _set(motor, "mjc:biasType", types.Token, "affine")
    _set(motor, "mjc:ctrlLimited", types.Token, "true")
    _set(motor, "mjc:ctrlRange:min", types.Double, COMMAND_RANGE_RAD[0])
    _set(motor, "mjc:ctrlRange:max", types.Double, COMMAND_RANGE_RAD[1])


def _set(spec: Any, name: str, value_type: Any, value: object) -> None:
    from pxr import Sdf

    Sdf.AttributeSpec(spec, name, value_type).default = value
