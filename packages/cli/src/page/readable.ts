import { isJoining } from '@tapedeck/tape/internal';

/** What is not seen, or turns what stands beside it: marks of direction, zero-width characters, tags, other ends of lines. */
const misleading = /[\p{Cf}\p{Zl}\p{Zp}]/gu;

/**
 * JSON for the page, with the characters of its texts that mislead a reader as escapes that are seen, as a terminal shows them:
 * a command that waits for approval, or the address of a link, must not read as another one. Those stay that join emoji, or
 * letters. A browser draws controls as boxes, or as spaces.
 */
export function readable(json: string): string {
  return json.replace(misleading, (c, at: number) =>
    isJoining(json, at) ? c : `\\\\u{${(c.codePointAt(0) ?? 0).toString(16)}}`,
  );
}
