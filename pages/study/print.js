// A study on paper: every position that has words, with its program and its times, one under the other.

function printed(data, prose) {
  const { study } = data;
  return [
    el("h1", {}, study.title),
    el("p", {}, ...prose.spans(study.about)),
    el("p", { class: "quiet" }, [study.authors.join(", "), study.licence, `${study.made}, ${study.by}`].filter(Boolean).join(" · ")),
    ...data.chapters.flatMap((chapter) => [el("h2", {}, chapter.title), ...chapter.stops.map((stop) => printedStop(data, chapter, stop, prose))]),
  ];
}

function printedStop(data, chapter, stop, prose) {
  const { history, sheets, game } = data.games[chapter.game];
  const node = history.find((each) => each.id === stop.at);
  const sheet = sheets[stop.at];
  tellTimesIn(game.unit);
  const times = data.machines.map((each) => [each, each.seconds[sheet.position.hash], each.seconds[game.start]]).filter(([, here]) => here);
  const lines = [...sheet.program.head, ...sheet.program.lines].map((line) => line.text);
  const added = new Set(sheet.program.added);
  const { question } = stop;
  return el("section", { class: "stop" },
    el("div", { class: "opening" }, ...(stop.title ? [el("h3", {}, stop.title)] : []),
      el("p", { class: "quiet" }, node.move === null ? "The start" : `Move ${node.ply}${node.variation ? ", a variation" : ""}: ${node.move}`,
        ...times.map(([each, here, start]) => `; ${duration(here[0])}${start ? `, ${ratio(start[0] / here[0])}` : ""} (${each.machine}, ${each.date})`))),
    ...prose.blocks(stop.blocks),
    ...(question ? [el("div", { class: "question" }, prose.paragraph(question.words, { class: "asked" }), question.move ? el("p", {}, el("code", {}, question.move)) : "",
      el("ol", { type: "a" }, ...question.answers.map((answer) => el("li", {}, answer.text))))] : []),
    el("pre", {}, ...lines.map((line) => el("span", { class: added.has(line) ? "added" : "" }, line))));
}
