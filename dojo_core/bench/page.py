"""A bench as one HTML file that needs nothing else: pictures, means, every row, machine and settings."""

from __future__ import annotations

from html import escape
from typing import Any

from dojo_core.bench import charts
from dojo_core.bench.charts import seconds_text
from dojo_core.bench.contest import Contest, contest
from dojo_core.bench.summary import summary, title
from dojo_core.bounded_json import read_object
from dojo_core.measure.conditions import Conditions
from dojo_core.program.target import DEFAULT_TARGET

STYLE = """
:root { color-scheme: light dark; --paper: #fbfaf7; --card: #ffffff; --ink: #1d2126; --soft: #666d75;
  --rule: #e2e0da; --ours: #b4431f; --behind: #d99a83; --theirs: #7f93a8; --apart: #c9d1d9;
  --mean: #1d2126;
  --memory: #2f7f79; --arithmetic: #8a5fa8; --limit: #2f7f79; --bad: #a3271c; }
@media (prefers-color-scheme: dark) { :root { --paper: #14171a; --card: #1c2024; --ink: #e8e6e1;
  --soft: #9aa2ab;
  --rule: #32383f; --ours: #f08a5d; --behind: #8f5a44; --theirs: #7d92a8; --apart: #48525d;
  --mean: #e8e6e1;
  --memory: #5cb8b0; --arithmetic: #b98fd6; --limit: #5cb8b0; --bad: #ff8a7a; } }
* { box-sizing: border-box; }
body { margin: 0; background: var(--paper); color: var(--ink);
  font: 15px/1.5 system-ui, -apple-system, "Segoe UI", Roboto, "Noto Sans", sans-serif; }
main { max-width: 1640px; margin: 0 auto; padding: 32px 40px 64px; }
h1 { font-size: 26px; margin: 0 0 4px; } h2 { font-size: 19px; margin: 40px 0 4px; }
h3 { font-size: 15px; margin: 0 0 8px; font-weight: 600; }
p { max-width: 78ch; margin: 4px 0 12px; } .soft, figcaption { color: var(--soft); }
.figures { display: flex; flex-wrap: wrap; gap: 14px 36px; margin: 20px 0 8px; }
.figures div { min-width: 150px; } .figures b { display: block; font-size: 30px; line-height: 1.15;
  font-variant-numeric: tabular-nums; } .figures span { color: var(--soft); }
figure { margin: 8px 0 0; background: var(--card); border: 1px solid var(--rule); border-radius: 8px;
  padding: 16px 18px; overflow-x: auto; } figure > svg { width: 100%; min-width: 860px; height: auto;
  display: block; }
.panels { display: grid; grid-template-columns: repeat(auto-fill, minmax(380px, 1fr)); gap: 14px;
  margin-top: 8px; }
.panels figure { margin: 0; } .panels svg { min-width: 0; } .panels p { margin: 8px 0 0;
  font-size: 13px; }
svg text { fill: var(--ink); font-size: 12px; } svg .axis, svg .name { fill: var(--soft); }
svg .value { font-variant-numeric: tabular-nums; } .grid { stroke: var(--rule); }
  .even { stroke: var(--ink);
  stroke-dasharray: 3 3; } .limit { stroke: var(--limit); stroke-width: 2; }
  .roof { stroke: var(--ink); stroke-width: 1.5; }
.ours { fill: var(--ours); } .ours.behind { fill: var(--behind); } .theirs { fill: var(--theirs); }
.apart { fill: var(--apart); } .mean { fill: var(--mean); } .bound-memory { fill: var(--memory); }
.bound-arithmetic { fill: var(--arithmetic); }
.key i { display: inline-block; width: 12px; height: 12px; border-radius: 2px; margin: 0 6px 0 0;
  vertical-align: -1px; }
.key span { margin-right: 18px; white-space: nowrap; }
.scroll { overflow-x: auto; } table { border-collapse: collapse; font-size: 14px; margin: 8px 0 4px; }
th { text-align: left; font-weight: 600; } th, td { padding: 4px 18px 4px 0;
  border-bottom: 1px solid var(--rule);
  vertical-align: top; } td.n, th.n { text-align: right; font-variant-numeric: tabular-nums;
  white-space: nowrap; }
tr.bad td { color: var(--bad); } tr.kernel td { padding-top: 18px; font-weight: 600;
  border-bottom-color: var(--soft); }
td.said { max-width: 620px; overflow-wrap: anywhere; } code { font-size: 13px; overflow-wrap: anywhere;
  }
dt { font-weight: 600; margin-top: 8px; } dd { margin: 0; overflow-wrap: anywhere; color: var(--soft); }
@media (max-width: 700px) { main { padding: 20px 16px; } .panels { grid-template-columns: 1fr; } }
"""


def page(document: dict[str, Any]) -> str:
    """The HTML of a bench as ``dojo bench --json`` writes it."""
    reports = document["reports"]
    figures = summary(reports)
    parts = [_head(document, figures)]
    if picture := charts.against_best(reports):
        parts.append(
            _figure(
                "Against the best baseline of each kernel",
                "The fastest baseline's best run over ours, in the same round; the median of the rounds. "
                "Above the dashed line ours is faster.",
                picture,
            )
        )
    if picture := charts.share_of_limit(reports):
        parts.append(
            _figure(
                "Share of the machine's limit",
                _contest(reports).limit,
                picture,
                [("bound-memory", "bound by memory"), ("bound-arithmetic", "bound by arithmetic")],
            )
        )
    parts.append(_panels(reports))
    if picture := charts.roofline(reports):
        parts.append(
            _figure(
                "Roofline",
                "Operations as the formula counts them, bytes as every input read once and every output "
                "written once.",
                picture,
            )
        )
    parts += [_means(document, figures), _rows(reports), _settings(document)]
    body = "\n".join(part for part in parts if part)
    return (
        '<!doctype html>\n<html lang="en">\n<head>\n<meta charset="utf-8">\n'
        '<meta name="viewport" content="width=device-width, initial-scale=1">\n'
        f"<title>Dojo bench</title>\n<style>{STYLE}</style>\n</head>\n"
        f"<body>\n<main>\n{body}\n</main>\n</body>\n</html>\n"
    )


def _contest(reports: list[dict[str, Any]]) -> Contest:
    """That of what the programs ran on: of one bench, all on the same. Raises KeyError for an unknown one."""
    target = str(reports[0].get("target", DEFAULT_TARGET)) if reports else DEFAULT_TARGET
    held = contest(target)
    if held is None:
        raise KeyError(target)
    return held


def _head(document: dict[str, Any], summarised: dict[str, Any]) -> str:
    reports = document["reports"]
    numbers = []
    best = summarised["against"]["reference"].get("best", {}) if reports else {}
    if best.get("geometric_mean"):
        numbers.append((f"{best['geometric_mean']:.2f}×", "against the best baseline of each kernel"))
        numbers.append((f"{best['worst']:.2f}×", f"the least, {best['worst_kernel']}"))
    for bound, words in (("memory", "memory-bound"), ("arithmetic", "compute-bound")):
        share = summarised["share"][bound]
        if share["geometric_mean"]:
            numbers.append(
                (f"{100 * share['geometric_mean']:.0f}%", f"of the limit, {share['kernels']} {words}")
            )
    figures = "".join(f"<div><b>{number}</b><span>{escape(words)}</span></div>" for number, words in numbers)
    machine = escape(reports[0]["machine_summary"]) if reports else ""
    count = f"{len(reports)} kernel{'s' if len(reports) != 1 else ''}"
    means = "Geometric means of the median ratio of the rounds." if numbers else ""
    return (
        f'<h1>Dojo bench</h1><p class="soft">{count}, {escape(document["time"])}. {machine}</p>'
        f'<div class="figures">{figures}</div><p class="soft">{means}</p>'
    )


def _key(entries: list[tuple[str, str]]) -> str:
    colours = {
        "ours": "--ours", "theirs": "--theirs", "apart": "--apart", "bound-memory": "--memory",
        "bound-arithmetic": "--arithmetic", "limit": "--limit",
    }  # fmt: skip
    return (
        '<p class="key soft">'
        + "".join(
            f'<span><i style="background: var({colours[kind]})"></i>{escape(words)}</span>'
            for kind, words in entries
        )
        + "</p>"
    )


def _figure(heading: str, about: str, picture: str, key: list[tuple[str, str]] | None = None) -> str:
    return (
        f'<h2>{escape(heading)}</h2><p class="soft">{escape(about)}</p>{_key(key) if key else ""}'
        f"<figure>{picture}</figure>"
    )


def _panels(reports: list[dict[str, Any]]) -> str:
    figures = []
    for report in reports:
        absent = [e["name"] for e in report["entries"] if e["status"] != "ok"]
        note = f'<p class="soft">No time: {escape(", ".join(absent))}.</p>' if absent else ""
        figures.append(f"<figure><h3>{escape(title(report))}</h3>{charts.panel(report)}{note}</figure>")
    key = [
        ("ours", "ours"),
        ("theirs", "baseline"),
        ("apart", "shown apart"),
        ("limit", "the machine's limit"),
    ]
    return (
        f'<h2>Every entry, kernel by kernel</h2><p class="soft">{escape(_contest(reports).panels)}</p>'
        f'{_key(key)}<div class="panels">{"".join(figures)}</div>'
    )


def _means(document: dict[str, Any], summarised: dict[str, Any]) -> str:
    names = {e["entry"]: e["name"] for r in document["reports"] for e in r["entries"]}
    rows = []
    for ours, others in summarised["against"].items():
        if ours != "reference" and others == summarised["against"]["reference"]:
            continue  # it is the reference of every kernel
        for other, each in others.items():
            if not each["geometric_mean"]:
                continue
            rows.append(
                f"<tr><td>{escape('ours' if ours == 'reference' else names[ours])}</td>"
                f"<td>{escape('the best of each kernel' if other == 'best' else names[other])}</td>"
                f'<td class="n">{each["geometric_mean"]:.3f}×</td><td class="n">{each["kernels"]}</td>'
                f'<td class="n">{each["worst"]:.2f}×</td><td>{escape(each["worst_kernel"])}</td></tr>'
            )
    if not rows:
        return ""
    return (
        '<h2>Geometric means</h2><p class="soft">A baseline’s time over ours. “ours” is the line by '
        "hand, where there is none a heuristic’s line, else the start program.</p>"
        '<div class="scroll"><table><tr><th>entry</th><th>against</th><th class="n">mean</th><th '
        'class="n">kernels</th>'
        f'<th class="n">least</th><th></th></tr>{"".join(rows)}</table></div>'
    )


def _rows(reports: list[dict[str, Any]]) -> str:
    rows = []
    for report in reports:
        limits = report["limits"]
        bound = ""
        if limits:
            bound = (
                f" · limit {seconds_text(limits['seconds'])} ({escape(limits['bound'])}; "
                f"{escape(limits['pattern'])} at "
                f"{limits['gbytes_per_second']:.1f} GB/s, {escape(limits['way'])}; {limits['gflops']:.0f} "
                "GFLOP/s)"
            )
            if limits.get("reached"):
                bound += f", as {escape(limits['reached'])} took"
        remarks = "".join(f"<br><span class='soft'>{escape(r)}</span>" for r in report["remarks"])
        rows.append(f'<tr class="kernel"><td colspan="8">{escape(title(report))}{bound}{remarks}</td></tr>')
        for entry in report["entries"]:
            if entry["status"] != "ok":
                words = f"{entry['status'].replace('_', ' ')}: {entry['message']}"
                rows.append(
                    f'<tr class="bad"><td>{escape(entry["name"])}</td><td class="n">–</td><td '
                    'class="n">–</td>'
                    f'<td></td><td></td><td></td><td></td><td class="said">{escape(words)}</td></tr>'
                )
                continue
            ratio = entry.get("ratio") or {}
            known = ratio.get("median") is not None
            spread = f"{ratio['min']:.2f}–{ratio['max']:.2f}" if known else ""
            middle = f"{ratio['median']:.2f}×" if known else ""
            share = f"{100 * entry['share']:.0f}%" if entry.get("share") else ""
            details = entry["details"] + (f" {_variants(entry)}" if len(entry["variants"]) > 1 else "")
            rows.append(
                f'<tr><td>{escape(entry["name"])}</td><td class="n">{seconds_text(entry["min"])}</td>'
                f'<td class="n">{seconds_text(entry["median"])}</td>'
                f'<td class="n">{100 * entry["spread"]:.0f}%</td>'
                f'<td class="n">{middle}</td><td class="n">{spread}</td>'
                f'<td class="n">{share}</td><td class="said soft">{escape(details)}</td></tr>'
            )
    return (
        '<h2>All rows</h2><p class="soft">Spread: the median run over the best one. Ratio: over ours in '
        "the same round, median of the rounds, and from the least to the largest.</p>"
        '<div class="scroll"><table><tr><th>entry</th><th class="n">best</th><th class="n">median</th>'
        '<th class="n">spread</th><th class="n">ratio</th><th class="n">rounds</th><th '
        'class="n">of limit</th><th></th></tr>'
        f"{''.join(rows)}</table></div>"
    )


def _variants(entry: dict[str, Any]) -> str:
    variants = [
        f"{name} {seconds_text(came) if isinstance(came, float) else came}"
        for name, came in entry["variants"].items()
    ]
    return f"(tried: {'; '.join(variants)})"


def _settings(document: dict[str, Any]) -> str:
    reports = document["reports"]
    pairs = [(name, words) for name, words in document["versions"].items()]
    if reports:
        machine = read_object(reports[0]["machine"])
        pairs += [(key.replace("_", " "), str(value)) for key, value in machine.items() if value != ""]
        for report in reports:
            busy = Conditions(report.get("load"))
            if busy.busy:
                pairs.append((title(report), str(busy)))
        pairs.append(("rounds", f"{reports[0]['rounds']} of {reports[0]['samples']} runs"))
    pairs += [("not measured", f"{s['kernel']} {s['shape']}: {s['message']}") for s in document["skipped"]]
    rows = "".join(f"<dt>{escape(name)}</dt><dd>{escape(words)}</dd>" for name, words in pairs)
    return f"<h2>Machine and settings</h2><dl>{rows}</dl>"
