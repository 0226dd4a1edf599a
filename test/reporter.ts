import type { Reporter, TestModule } from 'vitest/node';

/** Ends the run with the plain line `N passed, N failed, N skipped`, and names every skipped test with its reason. */
export default class ClosingLine implements Reporter {
  onTestRunEnd(modules: readonly TestModule[], unhandledErrors: readonly unknown[]): void {
    let passed = 0;
    let failed = unhandledErrors.length;
    let skipped = 0;
    for (const module of modules) {
      if (module.errors().length > 0) failed += 1;
      // What fails around the tests, such as in beforeAll, fails too.
      for (const suite of module.children.allSuites()) if (suite.errors().length > 0) failed += 1;
      for (const test of module.children.allTests()) {
        const result = test.result();
        if (result.state === 'passed') passed += 1;
        else if (result.state === 'failed') failed += 1;
        else {
          skipped += 1;
          const note = result.state === 'skipped' ? (result.note ?? 'no reason given') : result.state;
          console.log(`skipped: ${test.fullName}: ${note}`);
        }
      }
    }
    console.log(`${passed} passed, ${failed} failed, ${skipped} skipped`);
  }
}
