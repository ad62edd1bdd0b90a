import type { KeyObject } from 'node:crypto';
import { existsSync, readFileSync } from 'node:fs';
import { NotFoundError, UsageError } from '../errors/kinds.ts';

/**
 * Reads an Ed25519 key from a PEM file. `parse` is `createPrivateKey` or `createPublicKey`, which also takes a private
 * key.
 * @throws NotFoundError, UsageError
 */
export function readKey(path: string, parse: (pem: Buffer) => KeyObject): KeyObject {
  if (!existsSync(path))
    throw new NotFoundError(`cannot read the key '${path}': no such file`, { file: path });
  let key: KeyObject;
  try {
    key = parse(readFileSync(path));
  } catch (error) {
    throw unusable(path, (error as Error).message);
  }
  if (key.asymmetricKeyType !== 'ed25519') throw unusable(path, `it is of the type ${key.asymmetricKeyType}`);
  return key;
}

function unusable(path: string, why: string): UsageError {
  return new UsageError(`cannot use the key '${path}': ${why}`, {
    hint: 'make an Ed25519 key with: openssl genpkey -algorithm ed25519 -out key.pem',
  });
}
