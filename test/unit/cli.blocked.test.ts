import { onBlocked } from '@tapedeck/cli/internal';
import { expect, test } from 'vitest';

test('listeners of Ctrl-C are off only while the thread waits for a server', () => {
  const always = () => {};
  process.on('SIGINT', always);
  process.once('SIGINT', () => {});
  const before = process.rawListeners('SIGINT');
  const blocked = onBlocked({ interrupted: false });
  try {
    for (const ms of [200, 400, 60_000]) {
      blocked(ms);
      expect(process.listenerCount('SIGINT')).toBe(0);
    }
    blocked(0);
    expect(process.rawListeners('SIGINT')).toEqual(before);
  } finally {
    for (const listener of before.slice(-2)) process.off('SIGINT', listener as () => void);
  }
});
