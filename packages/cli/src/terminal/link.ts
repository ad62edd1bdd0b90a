/** Where output goes, and the settings of its user. */
interface Target {
  readonly isTerminal: boolean;
  readonly env: Readonly<Record<string, string | undefined>>;
}

/** Terminals that are known by `TERM_PROGRAM`, with the first version that has links. */
const programs: Readonly<Record<string, readonly number[]>> = {
  'iTerm.app': [3, 1],
  WezTerm: [20200620],
  vscode: [1, 72],
  ghostty: [],
  rio: [],
  zed: [],
  tmux: [3, 4],
};

/**
 * Whether a terminal has links (OSC 8). No terminal answers that question: those that have them are known by their
 * variables, and `FORCE_HYPERLINK` decides for others, as it does for other programs.
 */
export function usesLinks({ isTerminal, env }: Target): boolean {
  if (!isTerminal) return false;
  const forced = env.FORCE_HYPERLINK ?? '';
  if (forced !== '') return forced !== '0' && forced !== 'false';
  const [term, program] = [env.TERM ?? '', env.TERM_PROGRAM ?? ''];
  const known = Object.hasOwn(programs, program) ? programs[program] : undefined;
  const isKnown = known !== undefined && isAtLeast(env.TERM_PROGRAM_VERSION ?? '', known);
  // A multiplexer passes on the variables of the terminal that it was started on.
  if (/^(?:screen|tmux)/.test(term)) return program === 'tmux' && isKnown;
  return (
    isKnown ||
    /^(?:xterm-kitty|xterm-ghostty|alacritty|foot|contour)/.test(term) ||
    // VTE 0.50.0 crashes on links.
    Number(env.VTE_VERSION ?? 0) > 5000 ||
    Number(env.KONSOLE_VERSION ?? 0) >= 201200 ||
    (env.WT_SESSION ?? '') !== ''
  );
}

/** Compares versions such as `3.4a`, `1.72.2` and `20240203-110809-5046fc22`. */
function isAtLeast(version: string, least: readonly number[]): boolean {
  const parts = version.split(/[.-]/).map((part) => Number.parseInt(part, 10) || 0);
  const first = least.findIndex((part, i) => part !== (parts[i] ?? 0));
  return first === -1 || (parts[first] ?? 0) > (least[first] ?? 0);
}

const [open, end] = ['\u001b]8;;', '\u001b\\'];

/** A text that a terminal opens an address for. The address must be encoded, as `URL` does it. */
export function linkTo(address: string, text: string): string {
  return `${open}${address}${end}${text}${open}${end}`;
}

/** A text without the links that `linkTo` made. */
export function withoutLinks(text: string): string {
  return text
    .split(open)
    .map((part, i) => (i === 0 ? part : part.slice(part.indexOf(end) + end.length)))
    .join('');
}
