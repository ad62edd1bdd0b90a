import { homedir } from 'node:os';
import { isAbsolute, join } from 'node:path';

/**
 * The directory for what `tape` records about a user's consent, outside of every home and project:
 * `$XDG_CONFIG_HOME/tape`, else `~/.config/tape`.
 */
export function stateDirectory(env                                              )         {
  const given = env.XDG_CONFIG_HOME ?? '';
  const user = env.HOME === undefined || env.HOME === '' ? homedir() : env.HOME;
  return join(isAbsolute(given) ? given : join(user, '.config'), 'tape');
}
