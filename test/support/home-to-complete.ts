import { anchor, user } from '@tapedeck/tape';
import { type TempHome, tempHome } from './temp-home.ts';

/** A home with `release`, its child `release-notes`, and `dm:slack:u1`, which is also `mom`. */
export function homeToComplete(): TempHome {
  const home = tempHome();
  home.session('release', user('Plan'), anchor('ready'), user('Go'), anchor('done'));
  home.session('dm:slack:u1', user('Hello'));
  using store = home.open();
  store.lineage.fork('release', { name: 'release-notes' });
  store.sessions.update('dm:slack:u1', { alias: { name: 'mom', reason: '' } });
  return home;
}
