import { trace } from '@opentelemetry/api';
import { BasicTracerProvider } from '@opentelemetry/sdk-trace-base';
import { openDeck } from '@tapedeck/runtime';
import { onCrashPoint } from '@tapedeck/tape/crash-point';

/** A traced process that is killed in a run of `main`, when its answer has arrived: `traced-worker.ts HOME SCRIPT`. */
const [home = '', model = ''] = process.argv.slice(2);
trace.setGlobalTracerProvider(new BasicTracerProvider());
onCrashPoint((point) => {
  if (point === 'answer/arrived') process.kill(process.pid, 'SIGKILL');
});
await using deck = await openDeck({ home, model });
await (await deck.session('main')).run('Plan');
