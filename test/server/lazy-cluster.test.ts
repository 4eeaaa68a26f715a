// Code that a server for a policies file does not load: its memory at start is the cost of every small installation.
import assert from 'node:assert/strict';
import { execFile } from 'node:child_process';
import { describe, it } from 'node:test';
import { fileURLToPath } from 'node:url';
import { promisify } from 'node:util';

const SERVER = new URL('../../src/server/index.ts', import.meta.url);
/** Prints the URL of every module that is loaded. */
const SCRIPT = `
import { registerHooks } from 'node:module';
const urls = [];
registerHooks({ load: (url, context, next) => (urls.push(url), next(url, context)) });
await import(${JSON.stringify(SERVER.href)});
process.stdout.write(JSON.stringify(urls));
`;

describe('src/server', () => {
  it('loads no code for clusters before a server follows one', async () => {
    const { stdout } = await promisify(execFile)(process.execPath, ['--input-type=module', '--eval', SCRIPT], {
      cwd: fileURLToPath(new URL('../..', import.meta.url)),
    });
    const urls = JSON.parse(stdout) as string[];
    assert.ok(urls.includes(SERVER.href));
    assert.deepEqual(
      urls.filter((url) =>
        /\/src\/(?:cluster|runtime|resources)\/|\/src\/server\/replica\/(?:revision-|replica\.ts)/.test(url),
      ),
      [],
    );
  });
});
