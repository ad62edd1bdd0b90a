import type { Secret } from '@tapedeck/tape';
import { secretFault, secretsIn } from '@tapedeck/tape/internal';
import type { McpServers } from './spec.ts';

/** Names of headers that hold a secret. */
const secretHeader = /auth|key|token|secret|cookie|password/i;

/** The secrets that the configuration of servers holds itself: values of headers and of variables. Pure. */
export function secretsOfServers(servers: McpServers = {}): readonly Secret[] {
  return Object.entries(servers).flatMap(([server, spec]) => {
    if (!('url' in spec)) return secretsIn(spec.env ?? {});
    const headers = Object.entries(spec.headers ?? {}).flatMap(([name, value]) => {
      // A server repeats the token, and not the word before it.
      const secret = value.replace(/^\s*(?:Bearer|Basic|Token)\s+/i, '').trim();
      const isSecret = secretHeader.test(name) && secretFault(secret) === undefined && !secret.includes('${');
      return isSecret ? [{ name: `${server}.${name.replace(/[^\w.-]/g, '_')}`, value: secret }] : [];
    });
    return [...headers, ...secretsIn({ [`${server}.url`]: spec.url })];
  });
}
