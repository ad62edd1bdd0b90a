/** Rules of a new session. */
export const ruleOption = {
  type: 'list',
  describe:
    "Rule for its calls of tools and those of all sessions below it: 'deny write(**)'; or a list: yolo, trusted, sandboxed",
} as const;

/**
 * The rules of a new session, one in each text.
 * @throws SESSION_BAD_INPUT
 */
export async function rulesIn(texts: readonly string[], act: string): Promise<string[]> {
  const { ruleTexts } = await import('@tapedeck/runtime/internal');
  return ruleTexts(texts, act);
}
