import crypto from 'node:crypto';
import { syncBuiltinESMExports } from 'node:module';

// Imported for its effect: the name of a draft has six random bytes, which are fixed here, so that it can be watched.
const { randomBytes } = crypto;
Object.assign(crypto, { randomBytes: (size: number) => (size === 6 ? Buffer.alloc(6) : randomBytes(size)) });
syncBuiltinESMExports();
