// Tries the promises of README and SECURITY.md on a cluster of its own, and prints each: `npm run tour`.
import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { fileURLToPath } from 'node:url';

const root = fileURLToPath(new URL('..', import.meta.url));
const args = ['--test', '--test-reporter=spec', 'test/tour/tour.test.ts'];
const child = spawn(process.execPath, args, { cwd: root, stdio: ['ignore', 'inherit', 'inherit'] });
const [code] = (await once(child, 'exit')) as [number | null];
process.exitCode = code ?? 1;
