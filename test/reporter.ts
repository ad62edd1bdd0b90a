import type { Reporter, TestModule } from 'vitest/node';

/** Closes a run with what was skipped, and one plain line, which tools can read. */
export default class CountReporter implements Reporter {
  onTestRunEnd(modules: readonly TestModule[], unhandled: readonly unknown[]): void {
    const count = { passed: 0, failed: unhandled.length, skipped: 0, pending: 0 };
    for (const module of modules) {
      for (const test of module.children.allTests()) {
        const { state } = test.result();
        count[state] += 1;
        // With a filter by name most tests are left out, and say nothing about the machine.
        if (state === 'skipped' && module.project.config.testNamePattern === undefined)
          console.log(`skipped: ${module.relativeModuleId} > ${test.fullName}`);
      }
      if (module.state() === 'failed' && [...module.children.allTests('failed')].length === 0)
        count.failed += 1;
    }
    console.log(`${count.passed} passed, ${count.failed} failed, ${count.skipped} skipped`);
  }
}
