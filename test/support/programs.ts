import { join } from 'node:path';

/** The variable of the environment that names the directory of bundled programs: see `bundle-programs.ts`. */
export const programsVariable = 'TAPEDECK_TEST_PROGRAMS';

/** Arguments of node that run `test/support/{name}`: its bundle, or where none was made, as in a watch, its source. */
export function program(name: string): readonly string[] {
  const dir = process.env[programsVariable];
  return dir === undefined
    ? ['--conditions=@tapedeck/source', join(import.meta.dirname, name)]
    : [join(dir, name.replace(/\.ts$/, '.js'))];
}

/** The command, which runs the bundle that the build made. */
export const tapeProgram: string = join(import.meta.dirname, '../../packages/cli/bin/tape.js');

/**
 * Arguments of node, and the directory, that run a module's text, which may import the packages: their bundles, or with
 * `fromSources` their modules one by one.
 */
export function script(
  text: string,
  { fromSources = false }: { readonly fromSources?: boolean } = {},
): { readonly args: readonly string[]; readonly cwd: string } {
  const dir = fromSources ? undefined : process.env[programsVariable];
  const args = ['--input-type=module', '-e', text];
  return dir === undefined
    ? { args: ['--conditions=@tapedeck/source', ...args], cwd: import.meta.dirname }
    : { args, cwd: dir };
}
