import type { Check, CheckedSection, CheckFinding } from '@tapedeck/runtime';
import { safe } from '../escape.ts';
import { counted } from '../output/counted.ts';
import { painted } from '../output/session.ts';
import { makeStyle, type Style } from '../terminal/style.ts';
import { wrapText } from '../terminal/wrap.ts';
import { commandFor, type StepOf } from './next-step.ts';

/** The result of a check as `--json` prints it; part of the documented contract. */
export function checkJson(
  { ok, sessions, entries, sections }: Check,
  { home }: Pick<StepOf, 'home'> = {},
): Readonly<Record<string, unknown>> {
  return {
    ok,
    sessions,
    entries,
    sections: Object.fromEntries(
      Object.entries(sections).map(([name, { ok, findings }]: [string, CheckedSection]) => [
        name,
        { ok, findings: findings.map((finding) => findingJson(finding, home)) },
      ]),
    ),
  };
}

function findingJson(finding: CheckFinding, home: string | undefined): Readonly<Record<string, unknown>> {
  const { id, code, weight, session, seq, message } = finding;
  return { id, code, weight, session, seq, message, next: nextOf(finding, home) };
}

function nextOf({ next, id }: CheckFinding, home: string | undefined): string | null {
  return next === undefined ? null : commandFor(next, { id, home });
}

/** How the result of a check looks. */
interface Look {
  readonly style: Style;
  /** Columns of the terminal; undefined in a pipe, where lines stay whole. */
  readonly columns?: number | undefined;
  /** The home that the user named. */
  readonly home?: string | undefined;
  /** Whether the home is on a server: it has no graph file, of which to say that it is in order. */
  readonly isOnServer?: boolean | undefined;
}

/** The result of a check as text: a line for each section, and one for each finding. */
export function checkText(
  { sessions, entries, sections }: Check,
  { style = makeStyle(false), columns, home, isOnServer = false }: Partial<Look> = {},
): string {
  const lines = Object.entries(sections).flatMap(([name, { ok, findings }]: [string, CheckedSection]) => {
    if (isOnServer && name === 'graph_file') return [];
    const isDamaged = findings.some(({ weight }) => weight === 'damage');
    const word = ok ? 'ok' : isDamaged ? 'damaged' : 'incomplete';
    const verdict = ok ? style.text('green', word) : painted(style, word);
    return [
      `${style.text('bold', name.replace('_', ' '))}: ${verdict}`,
      ...findings.flatMap((finding) => findingRows(finding, { style, columns, home })),
    ];
  });
  return [...lines, `${counted(sessions, 'session')}, ${counted(entries, 'entry', 'entries')}`].join('\n');
}

const colors = { damage: 'red', incomplete: 'yellow', note: 'dim' } as const;

type Color = (typeof colors)[CheckFinding['weight']];

function findingRows(finding: CheckFinding, { style, columns, home }: Look): readonly string[] {
  const { id, message, weight } = finding;
  return rowsOf({ id, text: `${message}${step(finding, home)}`, color: colors[weight] }, { style, columns });
}

/** The rows of something below its section: its id in a colour, and what is to say of it. */
export function rowsOf(
  { id, text, color }: { readonly id: string; readonly text: string; readonly color: Color },
  { style, columns }: Pick<Look, 'style' | 'columns'>,
): readonly string[] {
  const start = safe(id);
  const whole = safe(`${id}: ${text}`);
  const rows = columns === undefined ? [whole] : wrapText(whole, columns - 4);
  return rows.map((row, i) =>
    i > 0
      ? `    ${row}`
      : `  ${row.startsWith(start) ? style.text(color, start) + row.slice(start.length) : row}`,
  );
}

function step(finding: CheckFinding, home: string | undefined): string {
  const next = nextOf(finding, home);
  return next === null ? '' : ` (next: ${next})`;
}
