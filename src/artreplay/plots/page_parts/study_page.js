"use strict";
(function () {
  const SECONDS = 5;
  const PATTERNS = ["#1b4f8a", "#f2b84b", "#5a9e6f", "#d9d9d9", "#8a2d3b", "#9ecae1", "#4a4a4a", "#f4f4f4"];
  let charts = [];

  // Where the arms and the settings of a study have changed: a thin line with a number, explained below the chart.
  function marks(events) {
    return { hooks: { draw: [function (u) {
      const ctx = u.ctx, ratio = window.devicePixelRatio || 1;
      ctx.save();
      ctx.strokeStyle = ctx.fillStyle = "#1a1a1a";
      ctx.lineWidth = ratio;
      ctx.font = 11 * ratio + "px system-ui, sans-serif";
      events.forEach(function (event, place) {
        const x = Math.round(u.valToPos(event.at, "x", true));
        if (x < u.bbox.left || x > u.bbox.left + u.bbox.width) return;
        ctx.beginPath();
        ctx.setLineDash([2 * ratio, 3 * ratio]);
        ctx.moveTo(x, u.bbox.top);
        ctx.lineTo(x, u.bbox.top + u.bbox.height);
        ctx.stroke();
        ctx.fillText(String(place + 1), x + 3 * ratio, u.bbox.top + 11 * ratio);
      });
      ctx.restore();
    }] } };
  }

  // Days have the names of their months, and hours are those of the text above, which is in UTC.
  function dates(template) {
    const write = template.replace("{M}/{D}/{YY}", "{D} {MMM} {YYYY}").replace("{M}/{D}", "{D} {MMM}")
      .replace("{h}:{mm}{aa}", "{HH}:{mm}").replace("{h}{aa}", "{HH}:{mm}");
    return uPlot.fmtDate(write);
  }

  function options(place, events, series, format, range, extra) {
    return Object.assign({
      width: place.clientWidth, height: Math.min(300, Math.max(200, place.clientWidth * 0.6)),
      fmtDate: dates, tzDate: (seconds) => uPlot.tzDate(new Date(1000 * seconds), "Etc/UTC"),
      legend: { show: false }, cursor: { show: false },
      scales: { y: { range: range } },
      axes: [{ grid: { show: false } }, { size: 62, values: (u, ticks) => ticks.map(format) }],
      series: series, plugins: [marks(events)],
    }, extra || {});
  }

  function number(value, binary) {
    return binary ? +(100 * value).toFixed(2) + " %" : String(+value.toPrecision(3));
  }

  // Areas are drawn from the highest sum to the lowest, each over the one before.
  function drawShares(data, place) {
    const sums = [];
    let below = data.times.map(() => 0);
    data.shares.forEach(function (share) {
      below = below.map((value, at) => value + share[at]);
      sums.push(below);
    });
    const order = sums.map((_, at) => at).reverse();
    const stepped = uPlot.paths.stepped({ align: -1 });
    const series = [{}].concat(order.map((at) => ({
      fill: PATTERNS[at % PATTERNS.length], stroke: "#ffffff", width: 1.5, paths: stepped, points: { show: false },
    })));
    const columns = order.map((at) => [sums[at][0]].concat(sums[at]));
    const format = (value) => Math.round(100 * value) + " %";
    const times = [data.start].concat(data.times);
    charts.push(new uPlot(options(place, data.events, series, format, [0, 1]), [times].concat(columns), place));
  }

  function drawRewards(data, place) {
    const line = (style) => Object.assign({ stroke: "#1a1a1a", width: 2, spanGaps: true, points: { show: false } }, style);
    const series = [{},
      line({ stroke: "transparent" }), line({ stroke: "transparent" }),
      line({ points: { show: true, size: 5 } }), line({ dash: [8, 5] }), line({ dash: [2, 4] })];
    const log = data.times.map(() => data.log);
    const columns = [data.times, data.high, data.low, data.policy, data.control, log];
    const format = (value) => number(value, data.binary);
    const extra = { bands: [{ series: [1, 2], fill: "rgba(0, 0, 0, 0.15)" }] };
    const range = (u, low, high) => {
      const room = 0.08 * (high - low) || 0.1;
      return data.binary ? [Math.max(low - room, 0), Math.min(high + room, 1)] : [low - room, high + room];
    };
    charts.push(new uPlot(options(place, data.events, series, format, range, extra), columns, place));
  }

  function draw() {
    charts.forEach((chart) => chart.destroy());
    charts = [];
    const written = document.getElementById("numbers");
    if (!written) return;
    const data = JSON.parse(written.textContent);
    document.querySelectorAll(".swatch").forEach(function (box, at) {
      box.style.background = PATTERNS[at % PATTERNS.length];
    });
    const shares = document.getElementById("shares"), rewards = document.getElementById("rewards");
    if (shares) drawShares(data, shares);
    if (rewards) drawRewards(data, rewards);
  }

  async function refresh() {
    const main = document.querySelector("main");
    try {
      const answer = await fetch(location.pathname + "?part=main", { cache: "no-store" });
      if (!answer.ok) throw new Error(String(answer.status));
      const html = await answer.text();
      const open = [...document.querySelectorAll("details")].map((one) => one.open);
      main.innerHTML = html;
      document.querySelectorAll("details").forEach((one, at) => { one.open = open[at] || false; });
      draw();
    } catch (error) {
      const when = document.getElementById("when");
      if (when) when.textContent = "The service does not answer. This is what it said last.";
    }
  }

  let pending = 0;
  window.addEventListener("resize", function () {
    clearTimeout(pending);
    pending = setTimeout(draw, 150);
  });
  draw();
  if (document.body.dataset.live) setInterval(() => { if (!document.hidden) refresh(); }, 1000 * SECONDS);
})();
