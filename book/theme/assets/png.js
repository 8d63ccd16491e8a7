// Adds PNG to what can be taken away of a chart. The browser draws it from the chart's SVG, so it works from a disk too.
{
  const PIXELS_PER_UNIT = 2; // paper is finer than a screen

  const drawn = (address) => new Promise((resolve, reject) => {
    const image = new Image();
    image.onload = () => resolve(image);
    image.onerror = () => reject(new Error("the chart cannot be drawn"));
    image.src = address;
  });

  async function pngOf(svg) {
    const text = new XMLSerializer().serializeToString(svg);
    const image = await drawn(`data:image/svg+xml;charset=utf-8,${encodeURIComponent(text)}`);
    const canvas = document.createElement("canvas");
    canvas.width = PIXELS_PER_UNIT * svg.width.baseVal.value;
    canvas.height = PIXELS_PER_UNIT * svg.height.baseVal.value;
    const context = canvas.getContext("2d");
    context.fillStyle = "#ffffff"; // the drawing has dark letters and no background
    context.fillRect(0, 0, canvas.width, canvas.height);
    context.drawImage(image, 0, 0, canvas.width, canvas.height);
    return canvas.toDataURL("image/png");
  }

  for (const figure of document.querySelectorAll("figure.vega-figure")) {
    const svg = figure.querySelector(".vega-static svg");
    const button = document.createElement("button");
    button.type = "button";
    button.textContent = "PNG";
    button.addEventListener("click", async () => {
      const file = document.createElement("a");
      file.href = await pngOf(svg);
      file.download = `${figure.id}.png`;
      file.click();
    });
    figure.querySelector('.links a[href$=".svg"]').after(button);
  }
}
