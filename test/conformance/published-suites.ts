// Prints what of the CEL specification's conformance tests passes, what is not run and why, how many expressions come out
// as API servers evaluate them, how the Pod Security Standards' files are judged, and what of Open Cluster Management's
// dry runs is printed alike.
import { goldenCount, goldenDifferences } from './cel/golden-run.ts';
import { specCases } from './cel/spec-case.ts';
import { reasonNotToRun } from './cel/spec-exclusions.ts';
import { runSpecCase } from './cel/spec-run.ts';
import { dryrunCases, dryrunOutput } from './governance/dryrun-cases.ts';
import { filesOf, isJudgedRight } from './pod-security/cases.ts';

const cases = specCases();
const suites = [...new Set(cases.map((test) => test.suite))];
const failures: string[] = [];

const header = ['suite', 'cases', 'passed', 'failed', 'excluded'];
const rows = suites.map((suite) => {
  const all = cases.filter((test) => test.suite === suite);
  const run = all.filter((test) => reasonNotToRun(test) === undefined);
  const failed = run.flatMap((test) => {
    const difference = runSpecCase(test);
    return difference === undefined ? [] : [`${suite}/${test.section}/${test.name}: ${difference}`];
  });
  failures.push(...failed);
  const counts = [all.length, run.length - failed.length, failed.length, all.length - run.length];
  return [suite, ...counts.map(String)];
});
const sums = header.slice(1).map((_, index) => rows.reduce((sum, row) => sum + Number(row[index + 1]), 0));
for (const [suite = '', ...counts] of [header, ...rows, ['together', ...sums.map(String)]]) {
  console.log([suite.padEnd(20), ...counts.map((count) => count.padStart(9))].join(''));
}

console.log('\nNot run:');
const excluded = Map.groupBy(
  cases.filter((test) => reasonNotToRun(test) !== undefined),
  (test) => `${reasonNotToRun(test)}`,
);
for (const [reason, tests] of excluded) {
  const bySuite = Map.groupBy(tests, (test) => test.suite);
  const counts = bySuite.entries().map(([suite, inSuite]) => `${suite} ${inSuite.length}`);
  console.log(`  ${tests.length}: ${reason} (${[...counts].join(', ')})`);
}
const differences = goldenDifferences();
failures.push(...differences);
console.log(
  `\nAs an API server: value, error text and cost of ${goldenCount} expressions, ${differences.length} differ.`,
);

console.log('\nPod Security Standards, files of all versions:');
for (const level of ['baseline', 'restricted'] as const) {
  for (const outcome of ['pass', 'fail'] as const) {
    const files = filesOf(level, outcome);
    const wrong = files.filter((file) => !isJudgedRight(file, outcome));
    failures.push(...wrong.map(({ name, version }) => `${level}/${version}/${outcome}/${name}`));
    console.log(`  ${level.padEnd(10)} ${outcome}: ${files.length - wrong.length} of ${files.length}`);
  }
}

const dryruns = dryrunCases();
const same = dryruns.filter(({ error, differs }) => error === undefined && differs === undefined);
const wrong: string[] = [];
for (const one of same) {
  if ((await dryrunOutput(one)) !== one.output) {
    wrong.push(`dryrun/${one.upstream}`);
  }
}
failures.push(...wrong);
console.log(
  `\nDry runs of Open Cluster Management, character by character: ${same.length - wrong.length} of ${same.length}`,
);
for (const { upstream, error, differs = 'the message of the policy has the error' } of dryruns) {
  if (!same.some((one) => one.upstream === upstream)) {
    console.log(`  ${upstream}: ${differs}${error === undefined ? '' : `: ${error}`}`);
  }
}
for (const failure of failures) {
  console.log(`failed: ${failure}`);
}
process.exitCode = failures.length === 0 ? 0 : 1;
