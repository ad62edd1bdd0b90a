/** Where a link in a text of a tape leads, if it may be a link: to a page, or a person to write to. */
export function safeLink(address: string): string | undefined {
  if (!/^(?:https?:\/\/|mailto:)/i.test(address)) return undefined;
  try {
    const { protocol, href } = new URL(address);
    return protocol === 'https:' || protocol === 'http:' || protocol === 'mailto:' ? href : undefined;
  } catch {
    return undefined;
  }
}

const entities: Readonly<Record<string, string>> = {
  amp: '&',
  lt: '<',
  gt: '>',
  quot: '"',
  apos: "'",
  nbsp: ' ',
};

/** A text of Markdown with the usual names of characters replaced. It is shown as a text, never as HTML. */
export function withCharacters(text: string): string {
  return text.replace(/&(amp|lt|gt|quot|apos|nbsp|#39);/g, (all, name: string) =>
    name === '#39' ? "'" : (entities[name] ?? all),
  );
}
