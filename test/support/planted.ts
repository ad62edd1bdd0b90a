import { readdirSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { chat } from './provider/chat.ts';
import type { Protocol } from './provider/protocol.ts';

/** A server of chat completions that takes any key. */
export const anyKey: Protocol = { ...chat, refuses: () => undefined };

/** The texts as which a secret can stand in a file or a stream. */
const formsOf = (secret: string): readonly string[] => [
  secret,
  JSON.stringify(secret).slice(1, -1),
  encodeURIComponent(secret),
  Buffer.from(secret).toString('base64').replace(/=+$/, ''),
];

/** Which of these secrets some bytes contain, by name. */
export function leaksIn(secrets: Readonly<Record<string, string>>, bytes: string | Uint8Array): string[] {
  const all = Buffer.from(bytes);
  return Object.entries(secrets)
    .filter(([, secret]) => formsOf(secret).some((form) => all.includes(form)))
    .map(([name]) => name);
}

/** The files below a directory that contain a secret, each with its name, free pages of databases included. */
export function leakingFiles(dir: string, secrets: Readonly<Record<string, string>>): string[] {
  return readdirSync(dir, { withFileTypes: true, recursive: true })
    .filter((found) => found.isFile())
    .flatMap(({ parentPath, name }) =>
      leaksIn(secrets, readFileSync(join(parentPath, name))).map((secret) => `${name}: ${secret}`),
    );
}
