// Tries the promises of README and SECURITY.md, and prints each: `npm run tour`. First on a cluster of its own, then, for what
// only the API server of Kubernetes can show, by the tests that run on it. Names the tests that show the others.
import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { fileURLToPath } from 'node:url';
import { OTHER_TESTS, type OtherTest } from '../test/tour/other-tests.ts';

const root = fileURLToPath(new URL('..', import.meta.url));

/** Tests on kube-apiserver: what tenants reach, what policies read, and what the manifests of `install` allow. */
const ON_KUBE_APISERVER = ['test/e2e/tenants.test.ts', 'test/e2e/context-aware.test.ts', 'test/cli/install.test.ts'];

/** Runs test files. Resolves with whether all tests passed. */
async function run(...args: readonly string[]): Promise<boolean> {
  const child = spawn(process.execPath, ['--test', '--test-reporter=spec', ...args], {
    cwd: root,
    stdio: ['ignore', 'inherit', 'inherit'],
  });
  const [code] = (await once(child, 'exit')) as [number | null];
  return code === 0;
}

function lineOf({ promise, file, title }: OtherTest): string {
  return `  ${promise}\n    ${file} "${title}"`;
}

const here = await run('test/tour/tour.test.ts');
process.stdout.write('\nOn the API server of Kubernetes (built by `npm run cluster:build`):\n');
const there = await run(...ON_KUBE_APISERVER);
process.stdout.write(`\nOther tests show, with \`npm test -- FILE\`:\n${OTHER_TESTS.map(lineOf).join('\n')}\n`);
process.exitCode = here && there ? 0 : 1;
