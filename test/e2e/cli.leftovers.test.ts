import { user } from '@tapedeck/tape';
import { expect, test } from 'vitest';
import { entryLines } from '../support/scripted.ts';
import { tempHome } from '../support/temp-home.ts';

test.each([
  ['merge', 'cut'],
  ['discard', 'cut', '--reason', 'too late'],
  ['archive', 'cut'],
  ['redact', 'cut@4', '--reason', 'secret'],
])('%s of a session whose process died in its answer records what was saved of it', async (...args) => {
  using home = tempHome();
  home.session('main', user('Go'));
  {
    using store = home.open();
    store.lineage.fork('main', { name: 'cut' });
    store.entries.append('cut', [user('Well?', { run: 'killed' })]);
    const chunks = [
      { type: 'text-start', id: 't' },
      { type: 'text-delta', id: 't', delta: 'I beg' },
    ].map((chunk, index) => ({ index, chunk }));
    store.live.save([{ session: 'cut', run: 'killed', chunks }]);
  }
  expect(await home.here(args)).toMatchObject({ code: 0 });
  using store = home.open();
  expect(store.live.read('cut')).toEqual([]);
  expect(entryLines(store.entries.read('cut'))).toContain('assistant: I beg');
  if (args[0] === 'merge')
    expect(entryLines(store.entries.read('main', { kind: 'message' })).at(-1)).toContain('I beg');
});
