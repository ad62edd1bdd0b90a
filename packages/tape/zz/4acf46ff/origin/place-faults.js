import { lstatSync, realpathSync, statSync } from 'node:fs';
import { dirname, sep } from 'node:path';

/** Why the place of a home is one where others may have put it or can replace it; empty for any other. */
export function placeFaults(dir        )                    {
  const path = realpathSync(dir);
  const open = ancestorsOf(path).find((one) => isOpenToAll(statSync(one).mode));
  return [
    ...(lstatSync(dir).isSymbolicLink() ? [`it is a link to '${path}'`] : []),
    ...(path.split(sep).includes('node_modules') ? ['it is inside of node_modules'] : []),
    ...(open === undefined ? [] : [`every user can write '${open}', which contains it`]),
  ];
}

function ancestorsOf(path        )                    {
  const parent = dirname(path);
  return parent === path ? [] : [parent, ...ancestorsOf(parent)];
}

/** In a directory with the sticky bit, such as /tmp, users cannot replace the files of others. */
function isOpenToAll(mode        )          {
  return (mode & 0o002) !== 0 && (mode & 0o1000) === 0;
}
