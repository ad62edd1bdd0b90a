import { hash, randomBytes, timingSafeEqual } from 'node:crypto';

/** Who may ask: who opened the address first. */
export interface Entrance {
  /** The secret in the address that is printed. */
  readonly token: string;
  /** The name of the cookie: browsers send a cookie to every port of a host. */
  readonly cookieName: string;
  /** Takes a token, once, and returns the header that sets the cookie for which it is exchanged. */
  enter(token: string): string | undefined;
  /** Whether a request has that cookie. */
  admits(cookies: string | undefined): boolean;
}

/** An entrance with secrets of its own. */
export function makeEntrance(port: number): Entrance {
  const token = secret();
  const cookie = secret();
  const cookieName = `tape-ui-${port}`;
  let isUsed = false;
  return {
    token,
    cookieName,
    enter: (given) => {
      // Both are looked at, so that the time says nothing.
      const isRight = isSame(given, token);
      if (isUsed || !isRight) return undefined;
      isUsed = true;
      return `${cookieName}=${cookie}; Path=/; HttpOnly; SameSite=Strict`;
    },
    admits: (cookies = '') =>
      cookies
        .split(';')
        .map((pair) => pair.trim())
        .filter((pair) => pair.startsWith(`${cookieName}=`))
        // Another program on this machine can set one of the name beside it.
        .some((pair) => isSame(pair.slice(cookieName.length + 1), cookie)),
  };
}

function secret(): string {
  return randomBytes(32).toString('base64url');
}

/** Compares two texts in a time that depends on neither. */
function isSame(a: string, b: string): boolean {
  return timingSafeEqual(hash('sha256', a, 'buffer'), hash('sha256', b, 'buffer'));
}
