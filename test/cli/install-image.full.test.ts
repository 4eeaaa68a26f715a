// Containerfile. Without a container engine, each stage becomes a folder in which the steps COPY and RUN are executed. Base
// images and users are ignored.
import assert from 'node:assert/strict';
import { execFile } from 'node:child_process';
import { cp, mkdir, mkdtemp, readFile, rm, stat } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { basename, dirname, join } from 'node:path';
import { after, describe, it } from 'node:test';
import { promisify } from 'node:util';
import { ROOT } from './command.ts';
import { STEPS } from './containerfile.ts';

/** Executes the steps. Returns the folder of the last stage. */
async function built(folder: string): Promise<{ readonly root: string; readonly workdir: string }> {
  let stage = '';
  let workdir = '/';
  const inStage = (path: string, of = stage): string => join(folder, of, path);
  const resolved = (path: string): string => (path.startsWith('/') ? path : join(workdir, path));
  for (const { instruction, text } of STEPS) {
    const words = text.split(' ');
    switch (instruction) {
      case 'FROM':
        stage = words[2] ?? 'final';
        workdir = '/';
        break;
      case 'WORKDIR':
        workdir = text;
        await mkdir(inStage(workdir), { recursive: true });
        break;
      case 'COPY': {
        const from = words[0]?.startsWith('--from=') === true ? words.shift()?.slice('--from='.length) : undefined;
        const target = words.pop() ?? '.';
        for (const source of words) {
          const origin = from === undefined ? join(ROOT, source) : inStage(source, from);
          const isFolder = (await stat(origin)).isDirectory();
          const name = isFolder ? '' : basename(source);
          const destination = inStage(join(resolved(target), name));
          await mkdir(dirname(destination), { recursive: true });
          await cp(origin, destination, { recursive: true, filter: (path) => !path.includes('/.git') });
        }
        break;
      }
      case 'RUN':
        await promisify(execFile)('sh', ['-e', '-c', text], {
          cwd: inStage(workdir),
          // npm uses its cache.
          env: { ...process.env, npm_config_prefer_offline: 'true' },
        });
        break;
      default:
    }
  }
  return { root: inStage('/'), workdir };
}

describe('the built image', () => {
  const folders: string[] = [];
  after(async () => {
    await Promise.all(folders.map((folder) => rm(folder, { recursive: true, force: true })));
  });

  it('is built by steps that succeed, and starts without tools and sources', { timeout: 300_000 }, async () => {
    const folder = await mkdtemp(join(tmpdir(), 'portcullis-image-'));
    folders.push(folder);
    const { root } = await built(folder);
    const entrypoint = JSON.parse(
      STEPS.find(({ instruction }) => instruction === 'ENTRYPOINT')?.text ?? '[]',
    ) as string[];
    const [, program = ''] = entrypoint;
    const options = { cwd: folder, env: { ...process.env, NODE_COMPILE_CACHE: join(folder, 'compiled') } };
    const started = await promisify(execFile)(process.execPath, [join(root, program), '--version'], options);
    const { version } = JSON.parse(await readFile(join(ROOT, 'package.json'), 'utf8')) as { version: string };
    assert.equal(started.stdout.trim(), version);
    const manifests = await promisify(execFile)(
      process.execPath,
      [join(root, program), 'install', '--dry-run=client'],
      options,
    );
    assert.match(manifests.stdout, /^kind: Deployment$/m);
    await assert.rejects(readFile(join(root, 'opt/portcullis/node_modules/typescript/package.json')));
    await assert.rejects(readFile(join(root, 'opt/portcullis/src/cli/main.ts')));
  });
});
