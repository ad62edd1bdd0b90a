import { styleText } from 'node:util';

/** A format of `styleText`. */
type Format = Parameters<typeof styleText>[0];

/** Formats of texts for a terminal, or none of them. */
export interface Style {
  /** A text in a colour or face: `style.text('bold', name)`. Pad and cut the text before. */
  text(format: Format, text: string): string;
  /** A text that a terminal opens an address for ("OSC 8"), where it can. */
  link(address: string, text: string): string;
}

/** What the user and the terminal allow. */
export interface Allowed {
  readonly color: boolean;
  readonly links: boolean;
}

/** Makes the formats. Without colours and links, texts stay as they are. */
export function makeStyle({ color, links }: Allowed): Style {
  return {
    text: (format, text) =>
      color && text !== '' ? styleText(format, text, { validateStream: false }) : text,
    link: (address, text) =>
      links ? `\u001b]8;;${encodeURI(address)}\u001b\\${text}\u001b]8;;\u001b\\` : text,
  };
}

/** When to colour: `auto` is on a terminal, unless `NO_COLOR` is set. */
export type ColorWhen = 'auto' | 'always' | 'never';

/** Where output goes, and the settings of its user. */
interface Target {
  readonly isTerminal: boolean;
  readonly env: Readonly<Record<string, string | undefined>>;
}

/** Whether to colour output (https://no-color.org). */
export function usesColor(when: ColorWhen, { isTerminal, env }: Target): boolean {
  if (when !== 'auto') return when === 'always';
  return isTerminal && (env.NO_COLOR ?? '') === '' && env.TERM !== 'dumb';
}

/**
 * Whether the terminal follows links. No terminal answers that question: those that are known to are named by their
 * variables, and `FORCE_HYPERLINK` decides for others, as for other programs.
 */
export function usesLinks({ isTerminal, env }: Target): boolean {
  if (env.FORCE_HYPERLINK !== undefined) return !/^(?:0|false|)$/.test(env.FORCE_HYPERLINK);
  if (!isTerminal || env.TERM === 'dumb') return false;
  const vte = Number(env.VTE_VERSION ?? 0) >= 5000;
  const program = /^(?:iTerm\.app|WezTerm|vscode|ghostty|Hyper|rio|Tabby)$/.test(env.TERM_PROGRAM ?? '');
  return (
    vte ||
    program ||
    /^(?:xterm-kitty|foot|alacritty|contour)/.test(env.TERM ?? '') ||
    env.WT_SESSION !== undefined
  );
}
