// A quiet test reporter: one line for each file, failures and skips with their reasons, and a summary.
import type { TestEvent } from 'node:test/reporters';
import { relative } from 'node:path';
import { inspect, styleText } from 'node:util';

/** The counts of one test file. */
interface Count {
  passed: number;
  failed: number;
  skipped: number;
  ms: number;
}

/** The name of a test with the names of the suites around it. */
function title(path: readonly string[], name: string, nesting: number): string {
  return [...path.slice(0, nesting), name].join(' › ');
}

/** Whether a suite failed only because of its tests, which are reported themselves. */
function isOfItsTests(details: object): boolean {
  return (
    'error' in details &&
    details.error instanceof Error &&
    'failureType' in details.error &&
    details.error.failureType === 'subtestsFailed'
  );
}

/** Most errors of a chain of causes that are shown. */
const MAX_CAUSES = 10;

/** The stack of an error with those of its causes: the counterexample of a property is the cause of its failure. */
function errorReport(error: unknown): string {
  const shown = new Set<unknown>();
  let next = error;
  // An error may be its own cause.
  while (next !== undefined && !shown.has(next) && shown.size < MAX_CAUSES) {
    shown.add(next);
    next = next instanceof Error ? next.cause : undefined;
  }
  return [...shown]
    .map((one) => (one instanceof Error ? (one.stack ?? one.message) : inspect(one)))
    .join('\ncaused by: ');
}

export default async function* reporter(source: AsyncIterable<TestEvent>): AsyncGenerator<string> {
  const counts = new Map<string, Count>();
  const suites: string[] = [];
  const failures: string[] = [];
  const skips: string[] = [];
  for await (const event of source) {
    switch (event.type) {
      case 'test:start':
        suites[event.data.nesting] = event.data.name;
        suites.length = event.data.nesting + 1;
        break;
      case 'test:pass':
      case 'test:fail': {
        const { file = '(unknown file)', name, nesting, details } = event.data;
        const count = counts.get(file) ?? { passed: 0, failed: 0, skipped: 0, ms: 0 };
        counts.set(file, count);
        count.ms += nesting === 0 ? details.duration_ms : 0;
        const { skip } = event.data;
        const isSkipped = skip !== undefined && skip !== false;
        if (details.type === 'suite' && !isSkipped && (event.type === 'test:pass' || isOfItsTests(details))) {
          break;
        }
        if (event.type === 'test:fail') {
          count.failed += 1;
          const text = errorReport('error' in details ? (details.error.cause ?? details.error) : 'failed');
          failures.push(
            `${styleText('red', '✖')} ${title(suites, name, nesting)}\n  ${file}\n${text.replaceAll(/^/gm, '    ')}\n`,
          );
        } else if (isSkipped) {
          count.skipped += 1;
          skips.push(`- skipped: ${title(suites, name, nesting)} (${String(skip)})\n`);
        } else {
          count.passed += 1;
        }
        break;
      }
      case 'test:diagnostic':
        // An error outside of all tests, which fails the run.
        if (event.data.message.startsWith('Error: ')) {
          failures.push(`${styleText('red', '✖')} ${event.data.message}\n`);
        }
        break;
      case 'test:stderr':
      case 'test:stdout':
        yield event.data.message;
        break;
      default:
        break;
    }
  }
  for (const [file, count] of counts) {
    const mark = count.failed > 0 ? styleText('red', '✖') : styleText('green', '✔');
    yield `${mark} ${relative(process.cwd(), file)}  ${count.passed + count.failed} tests, ${Math.round(count.ms)} ms\n`;
  }
  yield* skips;
  yield* failures;
  const total = { passed: 0, failed: 0, skipped: 0 };
  for (const count of counts.values()) {
    total.passed += count.passed;
    total.failed += count.failed;
    total.skipped += count.skipped;
  }
  yield `\n${total.passed} passed, ${total.failed} failed, ${total.skipped} skipped\n`;
}
