import type { Style } from './style.ts';

/** A longer line stays as it is: finding pairs of marks in it would take long. */
const lineMax = 4_000;

/** Code, strong text and emphasis on one line; a mark counts where it stands at a word. */
const span =
  /(?<tick>`+)(?<code>[^`]+)\k<tick>(?!`)|(?<strong>\*\*|__)(?=\S)(?<bold>.*?\S)\k<strong>|(?<![\w*])(?<mark>[*_])(?=[^\s*_])(?<italic>[^*_]*[^\s*_])\k<mark>(?![\w*])/g;

/**
 * A text in Markdown with styles in place of its marks: headings and strong text are bold, code is dimmed, and fenced
 * code is indented, too. All else stays, lists and links as they are written. The text must be safe for a terminal.
 */
export function markdown(text: string, style: Style): string {
  let fence: string | undefined;
  return text
    .split('\n')
    .map((line) => {
      const [, mark] = /^ {0,3}(`{3,}|~{3,})/.exec(line) ?? [];
      if (fence !== undefined) {
        const ends = mark?.startsWith(fence) === true && line.trim() === mark;
        if (ends) fence = undefined;
        return ends ? style.text('dim', line) : `  ${style.text('dim', line)}`;
      }
      if (mark !== undefined) {
        fence = mark;
        return style.text('dim', line);
      }
      if (line.length > lineMax) return line;
      return /^ {0,3}#{1,6} /.test(line) ? style.text('bold', line) : inlineMarkdown(line, style);
    })
    .join('\n');
}

/** The same of one line, in which code, strong text and emphasis count alone. */
export function inlineMarkdown(text: string, style: Style): string {
  return text.replace(span, (...args) => {
    const { code, bold, italic } = args.at(-1) as Readonly<Record<string, string | undefined>>;
    if (code !== undefined) return style.text('dim', code);
    if (bold !== undefined) return style.text('bold', inlineMarkdown(bold, style));
    return style.text('italic', inlineMarkdown(italic ?? '', style));
  });
}
