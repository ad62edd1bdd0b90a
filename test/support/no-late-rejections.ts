/**
 * Set up in every test file. A promise that rejects before anything awaits it fails the run: Vitest reports the
 * rejection itself, and this the warning that Node.js prints once it is handled after all. A child process ends with
 * an error.
 */
const listening = Symbol.for('tapedeck.no-late-rejections');

// A worker sets up once for each file that it runs.
if (!Reflect.has(process, listening)) {
  Reflect.set(process, listening, true);
  process.on('warning', (warning) => {
    if (/^(?:PromiseRejectionHandled|UnhandledPromiseRejection)Warning$/.test(warning.name)) throw warning;
  });
}
