/** Loaded before the command: saves the functions of the bundle that it compiled, when it ends. */
import v8 from 'node:v8';
import vm, { type ScriptOptions } from 'node:vm';
import { saveCode } from './compiled-code.ts';

const scripts = new Map<string, vm.Script>();

const { Script } = vm;
vm.Script = class extends Script {
  constructor(text: string, options: ScriptOptions & { readonly filename: string }) {
    super(text, options);
    scripts.set(options.filename, this);
  }
};

// V8 takes code only under the flags under which it was made.
v8.setFlagsFromString = () => {};

process.on('exit', () => {
  for (const [file, script] of scripts) saveCode(`${file}.code`, script.createCachedData());
});
