import { styleText } from 'node:util';

/** A format of `styleText`. */
type Format = Parameters<typeof styleText>[0];

/** Formats of texts for a terminal, or none of them. */
export interface Style {
  /** A text in a colour or face: `style.text('bold', name)`. Pad and cut the text before. */
  text(format: Format, text: string): string;
}

/** Makes the formats. Without colours, texts stay as they are. */
export function makeStyle(color: boolean): Style {
  return {
    text: (format, text) =>
      color && text !== '' ? styleText(format, text, { validateStream: false }) : text,
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
