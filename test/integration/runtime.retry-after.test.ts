import { type RunResult, SessionError } from '@tapedeck/runtime';
import { describe, expect, test } from 'vitest';
import { eventsOf } from '../support/scripted.ts';
import { type Served, served } from '../support/served.ts';

const busy = { status: 429, message: 'come again' };
const hour = 3_600_000;
const httpDate = (ms: number) => new Date(Date.now() + ms).toUTCString();

/** The delay before the retry of a run, which is aborted then; undefined when it is not retried. */
async function delayOf({ main }: Served): Promise<number | undefined> {
  const run = main.run('Hi');
  let delay: number | undefined;
  for await (const event of run)
    if (event.type === 'retrying') {
      delay = event.delayMs;
      run.abort('enough');
    }
  return delay;
}

/** How long after now the error of a run says to come back, in milliseconds. */
function comeBackIn({ error }: RunResult): number {
  expect(error).toBeInstanceOf(SessionError);
  const { retryAt } = error?.data ?? {};
  expect(error?.message).toContain(`takes no calls until ${retryAt}`);
  return Date.parse(String(retryAt)) - Date.now();
}

describe('the delay that a server requests', () => {
  test.each([
    ['45', 45_000],
    ['1.5', 1_500],
    ['60', 60_000],
    ['0', 0],
  ])('in seconds is obeyed: %s', async (retryAfter, ms) => {
    await using s = await served((_, index) => (index === 0 ? { ...busy, retryAfter } : { text: 'Fine.' }));
    expect(await delayOf(s)).toBe(ms);
    const [retrying] = s.store.entries.read('main', { kind: 'event' });
    expect(retrying?.payload).toMatchObject({ delay_ms: ms });
  });

  test('as a date is obeyed', async () => {
    await using s = await served(() => ({ ...busy, retryAfter: httpDate(45_000) }));
    expect(await delayOf(s)).toBeGreaterThan(42_000);
    await using past = await served((_, index) =>
      index === 0 ? { ...busy, retryAfter: httpDate(-hour) } : { text: 'Fine.' },
    );
    expect(await past.main.run('Hi')).toMatchObject({ finish: 'stop', text: 'Fine.' });
  });

  test.each(['-5', 'soon', '', '1e3', 'Infinity'])(
    'that is malformed is replaced by that of the deck: %j',
    async (retryAfter) => {
      await using s = await served(
        (_, index) => (index === 0 ? { ...busy, retryAfter } : { text: 'Fine.' }),
        {
          limits: { retryDelayMs: 7 },
        },
      );
      const delays = (await eventsOf(s.main.run('Hi'))).flatMap((event) =>
        event.type === 'retrying' ? [event.delayMs] : [],
      );
      expect(delays).toEqual([7]);
    },
  );
});

describe('a delay beyond the limit', () => {
  test.each([
    ['in seconds', { retryAfter: '3600' }],
    ['as a date', { retryAfter: httpDate(hour) }],
    ['in milliseconds', { retryAfterMs: hour }],
  ])('%s fails the run at once, which says when to come back', async (_, requested) => {
    await using s = await served((_request, index) =>
      index === 0 ? { ...busy, ...requested } : { text: 'Fine.' },
    );
    const result = await s.main.run('Hi');
    expect(result).toMatchObject({ finish: 'error', error: { code: 'SESSION_RETRY_LATER' } });
    expect(Math.abs(comeBackIn(result) - hour)).toBeLessThan(60_000);
    expect(s.provider.requests).toHaveLength(1);
    expect(s.lines()).toEqual(['user: Hi', 'event run/error']);
    const [ended] = s.store.entries.read('main', { kind: 'event' });
    expect(ended?.payload).toMatchObject({ retry_at: result.error?.data.retryAt });
    expect(await s.main.run()).toMatchObject({ finish: 'stop', text: 'Fine.' });
  });

  test('is one beyond limits.maxRetryAfterMs', async () => {
    const answer = () => ({ ...busy, retryAfterMs: 90 });
    await using short = await served(answer, { limits: { maxRetryAfterMs: 89 } });
    expect(await short.main.run('Hi')).toMatchObject({ error: { code: 'SESSION_RETRY_LATER' } });
    await using long = await served(answer, { limits: { maxRetryAfterMs: 90, retries: 1 } });
    expect(await delayOf(long)).toBe(90);
  });

  test.each(['9'.repeat(30), '9'.repeat(400)])('can be without end: %s', async (retryAfter) => {
    await using s = await served(() => ({ ...busy, retryAfter }));
    expect(await s.main.run('Hi')).toMatchObject({
      error: { code: 'SESSION_RETRY_LATER', data: { retryAt: '9999-12-31T00:00:00.000Z' } },
    });
  });
});

test('a run without a retry left says when to come back, too', async () => {
  await using s = await served(() => ({ ...busy, retryAfter: '30' }), { limits: { retries: 0 } });
  const result = await s.main.run('Hi');
  expect(result.error?.code).toBe('SESSION_MODEL_FAILED');
  expect(Math.abs(comeBackIn(result) - 30_000)).toBeLessThan(10_000);
});

test('a lasting failure names no time', async () => {
  await using s = await served(() => ({ status: 400, message: 'no', retryAfter: '30' }));
  expect((await s.main.run('Hi')).error?.data).not.toHaveProperty('retryAt');
});

test('a summary that is requested fails at once, too', async () => {
  let isBusy = false;
  await using s = await served(() => (isBusy ? { ...busy, retryAfter: '3600' } : { text: 'Fine.' }), {
    compaction: { keep: { turns: 1 } },
  });
  const long = 'There is more to say of it. '.repeat(40);
  for (const word of ['One', 'Two', 'Three']) await s.main.run(`${word}. ${long}`);
  isBusy = true;
  await expect(s.main.compact()).rejects.toMatchObject({
    code: 'SESSION_COMPACTION_FAILED',
    data: { retryAt: expect.stringMatching(/^\d{4}-.*Z$/) },
  });
});
