const digits = '0123456789ABCDEFGHJKMNPQRSTVWXYZ';

/** A source of ULIDs that are equal in every run: `01JD000000…0001`, `…0002`, … */
export function countedIds(prefix = '01JD'): () => string {
  let n = 0;
  return () => {
    n += 1;
    let text = '';
    for (let rest = n; rest > 0; rest = Math.floor(rest / 32)) text = (digits[rest % 32] ?? '') + text;
    return prefix + text.padStart(26 - prefix.length, '0');
  };
}

/** A source of 16-byte salts that are equal in every run. */
export function countedSalts(): () => Uint8Array {
  let n = 0;
  return () => {
    n += 1;
    const salt = new Uint8Array(16);
    new DataView(salt.buffer).setUint32(12, n);
    return salt;
  };
}
