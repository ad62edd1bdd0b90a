/**
 * A text as the source of an `import`, an `export from`, `import()` or `require()`, after any spaces and comments.
 * Comments and texts can match too, which adds a file and leaves none out.
 */
const source =
  /(?:\bfrom|\bimport|\brequire)(?:\s|\(|\/\*[\s\S]*?\*\/|\/\/[^\n]*\n)*(?:"((?:\\[\s\S]|[^"\\\n])*)"|'((?:\\[\s\S]|[^'\\\n])*)'|`((?:\\[\s\S]|[^`\\])*)`)/g;

/** What a program imports, as the language reads it. Leaves out what is computed. Pure. */
export function specifiersIn(program: string): readonly string[] {
  return [...program.matchAll(source)].flatMap(([, double, single, template]) => {
    const text = double ?? single ?? template ?? '';
    return template?.includes('${') === true ? [] : [unescaped(text)];
  });
}

/** A text of JavaScript without its escapes, of which a specifier may have any. Pure. */
function unescaped(text: string): string {
  return text.replace(
    /\\(?:u\{([0-9a-f]{1,6})\}|u([0-9a-f]{4})|x([0-9a-f]{2})|(\r\n|[\s\S]))/gi,
    (_, long?: string, four?: string, two?: string, other = '') => {
      const code = long ?? four ?? two;
      if (code === undefined) return /^[\r\n\u2028\u2029]/.test(other) ? '' : other;
      const point = Number.parseInt(code, 16);
      return point > 0x10ffff ? '' : String.fromCodePoint(point);
    },
  );
}
