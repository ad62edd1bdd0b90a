/** What a person types, and what a terminal then shows, with its escapes. */
export interface Scene {
  readonly command: string;
  readonly output: string;
}

/** A text in one format, and where it stands. */
interface Span {
  readonly column: number;
  readonly text: string;
  readonly classes: readonly string[];
}

/** Sizes in pixels, and times in seconds. */
const size = { cell: 8.4, row: 20, margin: 16, bar: 30 };
const time = { before: 0.6, letter: 0.045, each: 1.6, row: 0.28 };

const names: Readonly<Record<string, string>> = {
  '1': 'b',
  '2': 'd',
  '3': 'i',
  '31': 'red',
  '32': 'green',
  '33': 'yellow',
  '34': 'blue',
  '35': 'magenta',
  '36': 'cyan',
  '90': 'd',
};
/** What ends a format: bold and dim end together, and so do all colours. */
const ends: Readonly<Record<string, RegExp>> = {
  '0': /./,
  '22': /^[bd]$/,
  '23': /^i$/,
  '39': /^(?:red|green|yellow|blue|magenta|cyan|d)$/,
};

/** The colours of both schemes, each with enough contrast to its background. */
const colours = `
  svg { --back: #ffffff; --bar: #f6f8fa; --edge: #d1d9e0; --text: #1f2328; --dim: #59636e; --red: #cf222e; --green: #116329;
    --yellow: #7d4e00; --blue: #0550ae; --magenta: #8250df; --cyan: #1b7c83; }
  @media (prefers-color-scheme: dark) {
    svg { --back: #0d1117; --bar: #161b22; --edge: #30363d; --text: #e6edf3; --dim: #8b949e; --red: #ff7b72; --green: #3fb950;
      --yellow: #d29922; --blue: #79c0ff; --magenta: #d2a8ff; --cyan: #56d4dd; }
  }
  text { fill: var(--text); font: 14px ui-monospace, SFMono-Regular, Menlo, Consolas, 'DejaVu Sans Mono', monospace; white-space: pre; }
  .b { font-weight: 600; } .i { font-style: italic; } .d { fill: var(--dim); }
  ${['red', 'green', 'yellow', 'blue', 'magenta', 'cyan'].map((name) => `.${name} { fill: var(--${name}); }`).join(' ')}
  .scene { visibility: hidden; } .last { visibility: visible; }
`;

/** What the terminal shows, and when: from one part of the time to another, in percent. */
interface Screen {
  readonly rows: readonly (readonly Span[])[];
  readonly from: number;
  readonly to: number;
  /** What is typed in the last row, and when that begins. */
  readonly typing?: { readonly command: string; readonly from: number };
}

/**
 * A recording of a terminal as an SVG image that plays by itself: it has no script and no font, and shows its last screen
 * where images do not move.
 */
export function terminalSvg(
  scenes: readonly Scene[],
  {
    columns,
    rows,
    title,
    description,
  }: {
    readonly columns: number;
    readonly rows: number;
    readonly title: string;
    readonly description: string;
  },
): string {
  const { screens, seconds } = screensOf(scenes, rows);
  const width = Math.ceil(columns * size.cell + 2 * size.margin);
  const height = rows * size.row + size.bar + 2 * size.margin - 6;
  const edge = `M0.5 ${size.bar}V8.5a8 8 0 0 1 8 -8H${width - 8.5}a8 8 0 0 1 8 8V${size.bar}z`;
  return [
    `<svg xmlns="http://www.w3.org/2000/svg" width="${width}" height="${height}" viewBox="0 0 ${width} ${height}" role="img" aria-labelledby="title desc">`,
    `<title id="title">${escaped(title)}</title>`,
    `<desc id="desc">${escaped(description)}</desc>`,
    `<style>${colours}@media (prefers-reduced-motion: no-preference) {`,
    ...screens.flatMap((screen, i) => rulesOf(screen, i, seconds)),
    '}</style>',
    `<rect x="0.5" y="0.5" width="${width - 1}" height="${height - 1}" rx="8" fill="var(--back)" stroke="var(--edge)"/>`,
    `<path d="${edge}" fill="var(--bar)" stroke="var(--edge)"/>`,
    ...['red', 'yellow', 'green'].map(
      (name, i) => `<circle cx="${20 + 18 * i}" cy="${size.bar / 2}" r="5.5" fill="var(--${name})"/>`,
    ),
    ...screens.map((screen, i) => groupOf(screen, i, i === screens.length - 1)),
    '</svg>',
    '',
  ].join('\n');
}

/** The screens of a terminal of so many rows, which scrolls: two for each command, while it is typed and after it. */
function screensOf(
  scenes: readonly Scene[],
  rows: number,
): { readonly screens: readonly Screen[]; readonly seconds: number } {
  const timed = scenes.map(({ command, output }) => {
    const shown = output.replaceAll('\r', '').trimEnd().split('\n');
    const typed = time.before + time.letter * command.length;
    return { command, shown, typed, all: typed + time.each + time.row * shown.length };
  });
  const seconds = timed.reduce((sum, { all }) => sum + all, 0);
  const at = (second: number) => round((100 * second) / seconds);
  const history: (readonly Span[])[] = [];
  let start = 0;
  const screens = timed.flatMap(({ command, shown, typed, all }): Screen[] => {
    if (history.length > 0) history.push([]);
    history.push([
      { column: 0, text: '$', classes: ['green', 'b'] },
      { column: 2, text: command, classes: ['b'] },
    ]);
    const [from, then, to] = [at(start), at(start + typed), at(start + all)];
    const typing = { command, from: at(start + time.before) };
    start += all;
    const before: Screen = { rows: history.slice(-rows), from, to: then, typing };
    history.push(...shown.map(spansOf));
    return [before, { rows: history.slice(-rows), from: then, to }];
  });
  return { screens, seconds: round(seconds) };
}

/** When a screen is there, and how what is typed is uncovered. */
function rulesOf({ from, to, typing }: Screen, i: number, seconds: number): readonly string[] {
  const first = from === 0 ? '' : '0% { visibility: hidden; } ';
  const last = to === 100 ? '' : ` ${to}% { visibility: hidden; }`;
  const rules = [
    `@keyframes s${i} { ${first}${from}% { visibility: visible; }${last} }`,
    `.s${i} { animation: s${i} ${seconds}s step-end infinite; }`,
  ];
  if (typing === undefined) return rules;
  const steps = `animation-timing-function: steps(${typing.command.length});`;
  const far = round(typing.command.length * size.cell);
  return [
    ...rules,
    `@keyframes c${i} { 0%, ${typing.from}% { transform: none; ${steps} } ${to}%, 100% { transform: translateX(${far}px); } }`,
    `.c${i} { animation: c${i} ${seconds}s linear infinite; }`,
  ];
}

function groupOf({ rows, typing }: Screen, i: number, isLast: boolean): string {
  const y = (row: number) => size.bar + size.margin + 10 + row * size.row;
  const lines = rows.map((row, at) => row.map((span) => spanOf(span, y(at))).join(''));
  // What is typed is covered at first, and the cover moves to the right.
  const cover =
    typing === undefined
      ? []
      : [
          `<rect class="c${i}" fill="var(--back)" x="${x(2)}" y="${y(rows.length - 1) - 15}" width="${round(typing.command.length * size.cell + 2)}" height="${size.row}"/>`,
        ];
  return [`<g class="scene s${i}${isLast ? ' last' : ''}">`, ...lines, ...cover, '</g>'].join('\n');
}

/** A text whose width is that of its cells, whatever the font. */
function spanOf({ column, text, classes }: Span, y: number): string {
  const start = text.length - text.trimStart().length;
  const shown = text.trim();
  if (shown === '') return '';
  const own = classes.length === 0 ? '' : ` class="${classes.join(' ')}"`;
  return `<text${own} x="${x(column + start)}" y="${y}" textLength="${round(columnsOf(shown) * size.cell)}">${escaped(shown)}</text>`;
}

const esc = '\u001b';

/** The texts of a row, each with the formats that its escapes give it. */
function spansOf(row: string): readonly Span[] {
  const spans: Span[] = [];
  let classes: readonly string[] = [];
  let column = 0;
  for (const part of row.split(new RegExp(`(${esc}\\[[0-9;]*[A-Za-z])`))) {
    const codes = part.startsWith(`${esc}[`) ? part.slice(2, -1).split(';') : [];
    for (const code of codes) {
      const end = ends[code];
      const name = names[code];
      if (end !== undefined) classes = classes.filter((one) => !end.test(one));
      else if (name !== undefined) classes = [...new Set([...classes, name])];
    }
    if (codes.length > 0) continue;
    // Texts apart stay at their columns, where a font has other widths for blanks.
    for (const { 0: text, index } of part.matchAll(/\S+(?: \S+)*/g)) {
      spans.push({ column: column + columnsOf(part.slice(0, index)), text, classes });
    }
    column += columnsOf(part);
  }
  return spans;
}

/** Number of cells of a text; a terminal draws an emoji in two. */
function columnsOf(text: string): number {
  return text.length + (text.match(/\p{Emoji_Presentation}/gu)?.length ?? 0);
}

function x(column: number): number {
  return round(size.margin + column * size.cell);
}

function round(n: number): number {
  return Math.round(n * 100) / 100;
}

function escaped(text: string): string {
  return text.replace(/[&<>"']/g, (c) => `&#${c.charCodeAt(0)};`);
}
