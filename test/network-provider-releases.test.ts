// tools/network-provider-releases.ts, as maintainers and `npm run drift` run it.
import assert from 'node:assert/strict';
import { execFileSync } from 'node:child_process';
import { mkdtemp, readFile, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { after, before, describe, it } from 'node:test';
import { builtinCatalogue } from '../src/engine/network-policy/index.ts';
import { parseYaml } from '../src/values/yaml/index.ts';
import { ROOT, run } from './cli/command.ts';

const { latest = '', checked = '' } = builtinCatalogue().find('calico') ?? assert.fail();
const DAY_MS = 24 * 60 * 60 * 1000;

describe('the releases of network providers', () => {
  let folder = '';
  let file = '';
  before(async () => {
    folder = await mkdtemp(join(tmpdir(), 'portcullis-releases-'));
    file = join(folder, 'releases.yaml');
  });
  after(() => rm(folder, { recursive: true }));

  const tool = (...flags: readonly string[]) =>
    run(process.execPath, [join(ROOT, 'tools/network-provider-releases.ts'), '--file', file, ...flags]);
  const listed = (provider: string, releases: object, more: object = {}) =>
    writeFile(
      file,
      JSON.stringify({
        refreshed: '2026-11-29',
        repositories: [{ url: 'https://example.com/a', providers: [provider], releases }],
        ...more,
      }),
    );

  describe('in a check', () => {
    it('are named when they are newer than what was examined, without a failure', async () => {
      await listed('calico', { '99.0.0': '2026-01-02', [latest]: '2026-01-01' });
      const { code, stdout, stderr } = await tool('--check');
      assert.equal(code, 0, stderr);
      assert.match(stdout, /^releases of network providers were listed on 2026-11-29, \d+ days ago/);
      const examined = `(latest ${latest}, checked ${checked})`;
      assert.ok(stdout.includes(`\nnot examined: calico 99.0.0 of 2026-01-02 ${examined}\n`), stdout);
      assert.match(stdout, /^no releases are listed of aks-cilium, antrea, /m);
      assert.doesNotMatch(stdout, /no releases are listed of .*(?:calico,|weave-net)/);
    });

    it('are named when an older line got one after the check', async () => {
      await listed('calico', { [latest]: '2026-01-01', '1.0.0': '9999-01-01' });
      assert.match((await tool('--check')).stdout, /^not examined: calico 1\.0\.0 of 9999-01-01 \(latest /m);
    });

    it('are not named when they were examined', async () => {
      await listed('calico', { [latest]: checked, '1.0.0': '2026-01-01' });
      const { code, stdout } = await tool('--check');
      assert.deepEqual([code, stdout.includes('not examined')], [0, false], stdout);
    });

    for (const [what, releases, more, expected] of [
      [
        'the latest release of the catalogue',
        { '1.0.0': '2026-01-01' },
        {},
        /calico: latest is .*, and no such release is listed: run /,
      ],
      ['a day', { [latest]: 'yesterday' }, {}, /releases.*: expected a day such as 2026-09-16, got "yesterday"/],
      ['a version', { stable: '2026-01-01' }, {}, /releases\.stable: expected a version such as 1\.20\.2/],
      ['known keys', {}, { refresh: '' }, /refresh: unknown key "refresh": did you mean "refreshed"\?/],
      ['the day of the refresh', {}, { refreshed: null }, /refreshed/],
    ] as const) {
      it(`fail without ${what}`, async () => {
        await listed('calico', releases, more);
        const { code, stderr } = await tool('--check');
        assert.equal(code, 1);
        assert.match(stderr, expected);
        assert.doesNotMatch(stderr, /\n +at /);
      });
    }

    it('fail for a provider that the catalogue does not have', async () => {
      await listed('calcio', {});
      const { code, stderr } = await tool('--check');
      assert.deepEqual([code, /calcio: expected a provider of the catalogue, once/.test(stderr)], [1, true], stderr);
    });
  });

  describe('in a refresh', () => {
    const urlOf = (name: string): string => `file://${join(folder, name)}`;
    const daysAgo = (days: number): string => new Date(Date.now() - days * DAY_MS).toISOString().slice(0, 10);
    const created = (name: string) => execFileSync('git', ['init', '--quiet', join(folder, name)]);
    const tagged = (name: string, day: string, tag: string, ...flags: readonly string[]): void => {
      const date = { GIT_COMMITTER_DATE: `${day}T12:00:00Z`, GIT_AUTHOR_DATE: `${day}T12:00:00Z` };
      const user = ['-c', 'user.name=a', '-c', 'user.email=a@b.c'];
      const git = (...args: readonly string[]) =>
        execFileSync('git', ['-C', join(folder, name), ...user, ...args], { env: { ...process.env, ...date } });
      git('commit', '--quiet', '--allow-empty', '--message', tag);
      git('tag', ...flags, tag);
    };

    before(() => {
      created('upstream');
      tagged('upstream', '2020-01-01', 'v1.0.0');
      tagged('upstream', daysAgo(30), 'v1.2.0');
      tagged('upstream', daysAgo(20), 'v1.10.0', '--annotate', '--message=release');
      tagged('upstream', daysAgo(10), 'v1.11.0-rc.1');
      tagged('upstream', daysAgo(10), 'chart-1.0.0');
    });

    const writeUpstream = (url: string) =>
      writeFile(
        file,
        JSON.stringify({
          refreshed: '2020-01-01',
          repositories: [{ url, providers: ['calico'], releases: { '0.1.0': '2020-01-01' } }],
        }),
      );

    it('are the tags of the last year, the newest version first, with their days', async () => {
      await writeUpstream(urlOf('upstream'));
      const { code, stderr } = await tool();
      assert.equal(code, 0, stderr);
      const text = await readFile(file, 'utf8');
      assert.match(text, /^# The newest releases of network providers/);
      assert.deepEqual(parseYaml(text), [
        {
          refreshed: daysAgo(0),
          repositories: [
            {
              url: urlOf('upstream'),
              providers: ['calico'],
              releases: { '1.10.0': daysAgo(20), '1.2.0': daysAgo(30) },
            },
          ],
        },
      ]);
    });

    it('have the newest, however old it is, since the catalogue ends there', async () => {
      created('ended');
      tagged('ended', '2020-01-01', 'v1.0.0');
      await writeUpstream(urlOf('ended'));
      const { code, stderr } = await tool();
      assert.equal(code, 0, stderr);
      assert.match(await readFile(file, 'utf8'), /releases:\n +1\.0\.0: '2020-01-01'\n/);
    });

    for (const [what, name, expected] of [
      ['cannot be reached', 'nowhere', /nowhere/],
      ['has no releases', 'empty', /has no tags such as v1\.20\.2: nothing was written/],
    ] as const) {
      it(`stay as they were when a repository ${what}`, async () => {
        created('empty');
        await writeUpstream(urlOf(name));
        const before = await readFile(file, 'utf8');
        const { code, stderr } = await tool();
        assert.equal(code, 1);
        assert.match(stderr, expected);
        assert.equal(await readFile(file, 'utf8'), before);
      });
    }
  });
});
