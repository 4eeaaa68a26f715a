// `portcullis netpol` on files, standard input and a Git diff.
import assert from 'node:assert/strict';
import { execFileSync } from 'node:child_process';
import { mkdtemp, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { after, before, describe, it } from 'node:test';
import { COMMAND, portcullis, run } from './command.ts';

const FIXTURE = 'test/fixtures/network-policies/documented.yaml';
const RANGE = JSON.stringify({
  apiVersion: 'networking.k8s.io/v1',
  kind: 'NetworkPolicy',
  metadata: { name: 'range', namespace: 'shop' },
  spec: { policyTypes: ['Egress'], egress: [{ ports: [{ port: 30_000, endPort: 32_000 }] }] },
});
const OTHER = { apiVersion: 'v1', kind: 'ConfigMap', metadata: { name: 'a' } };

describe('portcullis netpol', () => {
  it('checks standard input, and exits with 1 if a named provider does not support it', async () => {
    const check = ['netpol', 'check', '-f', '-', '--provider', 'cilium@1.15.4'];
    const { code, stdout } = await portcullis(check, { stdin: RANGE });
    assert.equal(code, 1);
    assert.match(
      stdout,
      /^shop\/range +False +FailClosed +Cilium 1\.15\.4 allows only port 30000, not 30000 to 32000$/m,
    );
    assert.equal((await portcullis([...check, '--fail-on', 'never'], { stdin: RANGE })).code, 0);
  });

  it('writes JSON, Markdown and JUnit', async () => {
    const check = ['netpol', 'check', '-f', '-', '--provider', 'cilium@1.15.4', '-o'];
    const json = JSON.parse((await portcullis([...check, 'json'], { stdin: RANGE })).stdout) as {
      results: { verdicts: { accepted: string; features: { type: string; paths: string[] }[] }[] }[];
    };
    const [verdict] = json.results[0]?.verdicts ?? [];
    assert.equal(verdict?.accepted, 'False');
    assert.deepEqual(verdict?.features.find(({ type }) => type === 'EndPort')?.paths, [
      'spec.egress[0].ports[0].endPort',
    ]);
    assert.match(
      (await portcullis([...check, 'markdown'], { stdin: RANGE })).stdout,
      /^\| shop\/range \| False \| FailClosed \|/m,
    );
    assert.match(
      (await portcullis([...check, 'junit'], { stdin: RANGE })).stdout,
      /<testcase name="cilium@1\.15\.4" classname="shop\/range"><failure /,
    );
  });

  it('writes SARIF and annotations of GitHub with the line of the field, in several documents and in a List', async () => {
    const folder = await mkdtemp(join(tmpdir(), 'portcullis-netpol-'));
    const file = join(folder, 'some.yaml');
    const policy = JSON.parse(RANGE) as object;
    const list = JSON.stringify({ apiVersion: 'v1', kind: 'List', items: [OTHER, policy] }, undefined, 1);
    await writeFile(
      file,
      `# first\n---\nkind: Other\napiVersion: v1\nmetadata: {name: a}\n---\n${RANGE}\n---\n${list}`,
    );
    try {
      const check = ['netpol', 'check', '-f', file, '--provider', 'cilium@1.15.4', '-o'];
      const line = 9 + list.slice(0, list.indexOf('"endPort"')).split('\n').length - 1;
      const github = await portcullis([...check, 'github']);
      assert.equal(github.code, 1);
      assert.deepEqual(
        [...github.stdout.matchAll(/^::error file=.*,line=(\d+),title=EndPort of shop\/range::Cilium /gm)].map(
          ([, at]) => Number(at),
        ),
        [7, line],
      );
      const { stdout } = await portcullis([...check, 'sarif']);
      const { runs } = JSON.parse(stdout) as { runs: { results: { ruleId: string; locations: object[] }[] }[] };
      assert.deepEqual(
        runs[0]?.results.map(({ ruleId, locations }) => [
          ruleId,
          /"startLine":(\d+)/.exec(JSON.stringify(locations))?.[1],
        ]),
        [
          ['EndPort', '7'],
          ['EndPort', String(line)],
        ],
      );
    } finally {
      await rm(folder, { recursive: true });
    }
  });

  it('checks the whole catalogue with exit code 0', async () => {
    const { code, stdout } = await portcullis(['netpol', 'check', '-f', FIXTURE]);
    assert.equal(code, 0);
    assert.match(stdout, /^38 policies, \d\d providers: \d+ accepted, \d+ not, \d+ unknown$/m);
  });

  it('says what a change fixes and breaks, and nothing for a change to the same', async () => {
    const whatIf = ['netpol', 'what-if', '-f', '-', '--provider', 'cilium@1.15.4', '--to'];
    const fixed = await portcullis([...whatIf, 'cilium@1.16.0'], { stdin: RANGE });
    assert.deepEqual([fixed.code, /^shop\/range +Fixes +EndPort +no longer: /m.test(fixed.stdout)], [0, true]);
    const same = await portcullis([...whatIf, 'cilium@1.15.4'], { stdin: RANGE });
    assert.deepEqual([same.code, same.stdout], [0, 'nothing changes\n']);
    assert.equal((await portcullis([...whatIf, 'flannel'], { stdin: RANGE })).code, 1);
  });

  it('takes the sidecars and the Services of the files into account', async () => {
    const named = {
      apiVersion: 'networking.k8s.io/v1',
      kind: 'NetworkPolicy',
      metadata: { name: 'scrape', namespace: 'shop' },
      spec: { podSelector: { matchLabels: { app: 'db' } }, ingress: [{ ports: [{ port: 'metrics' }] }] },
    };
    const to = [{ podSelector: { matchLabels: { tier: 'data' } } }];
    const spec = { podSelector: {}, policyTypes: ['Egress'], egress: [{ to }] };
    const pod = {
      metadata: { labels: { app: 'db', tier: 'data' } },
      spec: {
        initContainers: [{ name: 'a', restartPolicy: 'Always', ports: [{ name: 'metrics', containerPort: 8099 }] }],
      },
    };
    const metadata = { name: 'db', namespace: 'shop' };
    const items = [
      named,
      { ...named, metadata: { name: 'to-db', namespace: 'shop' }, spec },
      { apiVersion: 'apps/v1', kind: 'StatefulSet', metadata, spec: { template: pod } },
      { apiVersion: 'v1', kind: 'Service', metadata, spec: { selector: { app: 'db' } } },
    ];
    const stdin = JSON.stringify({ apiVersion: 'v1', kind: 'List', items });
    const calico = await portcullis(['netpol', 'check', '-f', '-', '--provider', 'calico@3.28.0'], { stdin });
    assert.match(
      calico.stdout,
      /^shop\/scrape +False +FailClosed +Calico 3\.28\.0 does not know the names of ports of si/m,
    );
    assert.match(calico.stdout, /1 accepted, 1 not, 0 unknown/);
    const explain = ['netpol', 'explain', 'to-db', '-f', '-', '--provider'];
    const aws = await portcullis([...explain, 'aws-vpc-cni@1.4.1,enable-network-policy=true'], { stdin });
    assert.match(
      aws.stdout,
      /warning: .* does not allow egress through a Service whose selector lacks labels of the peer/,
    );
  });

  it('names the advisories of a version, and the settings that they need', async () => {
    const from = [{ ipBlock: { cidr: '203.0.113.0/24' } }];
    const policy = { ...(JSON.parse(RANGE) as object), spec: { podSelector: {}, ingress: [{ from }] } };
    const explain = ['netpol', 'explain', '-f', '-', '--provider'];
    const { stdout } = await portcullis([...explain, 'cilium@1.19.0'], { stdin: JSON.stringify(policy) });
    assert.match(stdout, /Accepted=False, FeatureNotSupported, FailOpen/);
    assert.match(
      stdout,
      /GHSA-fm8w-2m5w-9j7r, CVE-2026-56743, versions >=1\.19\.0 <1\.19\.5, policy-default-local-cluster/,
    );
    assert.match(stdout, /warning: .*CVE-2026-33726.* if enable-endpoint-routes is "true", which is not the default/);
  });

  it('explains with paths and sources', async () => {
    const { stdout } = await portcullis(['netpol', 'explain', 'range', '-f', '-', '--provider', 'cilium@1.15.4'], {
      stdin: RANGE,
    });
    assert.match(
      stdout,
      /✘ EndPort: .*\n +Cilium 1\.15\.4 allows only .*\n +at spec\.egress\[0\]\.ports\[0\]\.endPort\n +evidence: Code https:/,
    );
  });

  it('fits the matrix into 80 columns', async () => {
    for (const args of [[], ['--provider', 'cilium', 'aws-vpc-cni', 'k3s-netpol']]) {
      const { code, stdout } = await portcullis(['netpol', 'matrix', ...args]);
      assert.equal(code, 0);
      assert.deepEqual(
        stdout.split('\n').filter((line) => line.length > 80),
        [],
      );
    }
  });

  for (const [name, args, message] of [
    ['an unknown provider', ['check', '--provider', 'cilum@1'], /no provider "cilum"\nDid you mean cilium\?/],
    [
      'an unknown setting',
      ['check', '--provider', 'cilium@1,a=b'],
      /cilium has no setting "a" in the catalogue\nIts settings: enable-policy/,
    ],
    ['a setting without a value', ['check', '--provider', 'cilium@1,a'], /expected SETTING=VALUE/],
    ['no provider to explain', ['explain', '-f', FIXTURE], /expected at least one provider/],
    ['half of a change', ['what-if', '--provider', 'cilium@1'], /expected --provider and --to/],
  ] as const) {
    it(`refuses ${name}`, async () => {
      const { code, stderr } = await portcullis(['netpol', ...args]);
      assert.equal(code, 2);
      assert.match(stderr, message);
    });
  }
});

describe('portcullis netpol in a Git repository', () => {
  let folder = '';
  const git = (...args: readonly string[]) =>
    execFileSync('git', ['-C', folder, '-c', 'user.name=a', '-c', 'user.email=a@example.com', ...args]);
  before(async () => {
    folder = await mkdtemp(join(tmpdir(), 'portcullis-netpol-'));
    await writeFile(join(folder, 'old.yaml'), RANGE.replace('"range"', '"old"'));
    await writeFile(join(folder, 'gone.yaml'), RANGE);
    git('init', '-q');
    git('add', '.');
    git('commit', '-qm', 'first');
    await rm(join(folder, 'gone.yaml'));
    await writeFile(join(folder, 'new.yaml'), RANGE);
    await writeFile(join(folder, 'values.yaml'), 'replicas: 1');
    await writeFile(join(folder, 'mine.yml'), 'name: mine');
    git('add', '.');
  });
  after(() => rm(folder, { recursive: true }));
  const inFolder = (...args: readonly string[]) =>
    run(process.execPath, [COMMAND, 'netpol', 'check', ...args], { cwd: folder });

  it('checks the files that differ, and says which are no manifests', async () => {
    const { stdout, stderr } = await inFolder('--diff', 'HEAD', '--provider', 'cilium@1.15.4');
    assert.match(stdout, /shop\/range/);
    assert.doesNotMatch(stdout, /shop\/old/);
    assert.match(stderr, /note: not checked: values\.yaml/);
  });

  it('says that a revision does not exist, and takes none for an option', async () => {
    const { code, stderr } = await inFolder('--diff=--output=x', '--provider', 'cilium@1.15.4');
    assert.equal(code, 1);
    assert.match(stderr, /git cannot compare with --output=x: /);
  });

  it('names the mistakes of a catalogue file', async () => {
    const { code, stderr } = await inFolder(
      '-f',
      'old.yaml',
      '--catalogue',
      'values.yaml',
      '--provider',
      'cilium@1.15.4',
    );
    assert.equal(code, 1);
    assert.match(stderr, /the catalogue cannot be used:\nvalues\.yaml: replicas: unknown key "replicas" in a provider/);
    assert.match(
      (await inFolder('-f', 'old.yaml', '--catalogue', 'mine.yml', '--provider', 'mine@1')).stdout,
      /old +Unknown/,
    );
  });
});
