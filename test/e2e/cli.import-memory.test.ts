import { join } from 'node:path';
import { describe, expect, test } from 'vitest';
import { writeTranscript } from '../bench/transcripts.ts';
import { hasPeak, peakMemory } from '../support/peak-memory.ts';
import { sized } from '../support/size.ts';
import { tempDir } from '../support/temp-dir.ts';

/** What an import may need, in MB. A process that only opens a database needs 50, and the records of the file 180. */
const budget = 256;

describe.skipIf(!hasPeak)('256 MB suffice (needs /proc)', () => {
  test('for an import of a long transcript', { timeout: sized(60_000, 300_000, 600_000) }, async () => {
    using dir = tempDir();
    const file = join(dir.path, '5f3c9a52-0000-4000-8000-000000000000.jsonl');
    writeTranscript(file, { bytes: sized(1_000_000, 60_000_000, 60_000_000) });
    const { peak } = await peakMemory(join(dir.path, 'home'), ['import', file, '--quiet']);
    expect(peak).toBeLessThanOrEqual(budget);
  });
});
