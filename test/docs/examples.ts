import { globSync } from 'node:fs';
import { page, root } from './pages.ts';

/** An example in a docstring. */
export interface Example {
  /** The file, and the line of the docstring. */
  readonly at: string;
  readonly code: string;
  /** What it prints, as the comments after `console.log` say. */
  readonly says: string;
}

/** The examples in the docstrings of the packages. */
export function examples(): readonly Example[] {
  return globSync('packages/*/src/**/*.ts', { cwd: root })
    .toSorted()
    .flatMap((file) => {
      const text = page(file);
      return Array.from(text.matchAll(/^ *\/\*\*[\s\S]*?\*\//gm), (docstring) => ({
        line: text.slice(0, docstring.index).split('\n').length,
        text: docstring[0].replace(/^ *\* ?/gm, ''),
      })).flatMap(({ line, text: prose }) =>
        Array.from(prose.matchAll(/^@example\n```ts\n([\s\S]*?)^```$/gm), ([, code = '']) => ({
          at: `${file}:${line}`,
          code,
          says: said(code),
        })),
      );
    });
}

/** The comments behind calls of `console.log`, and those on the lines right below. */
function said(code: string): string {
  let isOutput = false;
  const lines = code.split('\n').flatMap((line) => {
    const [, call, comment] = /^(.*?)\/\/ (.*)$/.exec(line) ?? ['', line, undefined];
    isOutput = call?.includes('console.log(') === true || (isOutput && call?.trim() === '');
    return isOutput && comment !== undefined ? [`${comment}\n`] : [];
  });
  return lines.join('');
}

/** What a page of the reference says about an export. */
export interface Section {
  readonly name: string;
  /** `Functions`, `Classes`, `Interfaces`, `Type Aliases` or `Variables`. */
  readonly group: string;
  readonly text: string;
}

/** The exports on a page of the reference. */
export function sections(path: string): readonly Section[] {
  return page(path)
    .split(/^## /m)
    .slice(1)
    .flatMap((group) =>
      group
        .split(/^### /m)
        .slice(1)
        .map((text) => ({
          name: text.match(/^\w+/)?.[0] ?? '',
          group: group.slice(0, group.indexOf('\n')),
          text,
        })),
    );
}
