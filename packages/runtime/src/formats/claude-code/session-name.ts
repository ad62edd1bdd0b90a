import { isUlid, isWorkerName, nameFault, sha256 } from '@tapedeck/tape/store';

/**
 * What a session of Claude Code is called here: its id, or a hash of one that cannot be a name. The search for files and their
 * plan say the same, so that what is known of a file is also found on the tapes.
 */
export function sessionName(id: string): string {
  const fits = nameFault(id) === undefined && !isUlid(id) && !isWorkerName(id);
  return fits ? id : `claude-code-${sha256(id).slice(0, 12)}`;
}
