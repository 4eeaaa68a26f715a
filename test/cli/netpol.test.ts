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

const BLOCK = `apiVersion: networking.k8s.io/v1
kind: NetworkPolicy
metadata: {name: block, namespace: shop}
spec:
  podSelector: {}
  policyTypes: [Egress]
  egress:
  - to: [{ipBlock: {cidr: 10.0.0.0/8}}]
`;

/** A folder with files, and the command in it. */
async function folderOf(files: Readonly<Record<string, string>>) {
  const folder = await mkdtemp(join(tmpdir(), 'portcullis-netpol-'));
  for (const [name, text] of Object.entries(files)) {
    await writeFile(join(folder, name), text);
  }
  return {
    netpol: (...args: readonly string[]) => run(process.execPath, [COMMAND, 'netpol', ...args], { cwd: folder }),
    [Symbol.asyncDispose]: () => rm(folder, { recursive: true }),
  };
}

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
      const check = ['netpol', 'check', '-f', file, '--provider', 'cilium@1.15.15', '-o'];
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

  it('has warnings in every format, with the place, and never beside "does what the policy says"', async () => {
    await using files = await folderOf({ 'block.yaml': BLOCK });
    const warning =
      'Cilium 1.20.0 does not match IPs of pods with an ipBlock: pods in 10.0.0.0/8 are not allowed, unless ';
    for (const [format, pattern] of [
      ['table', /^shop\/block +block\.yaml:8 +True +warning: (?<text>.*)$/m],
      ['markdown', /^\| shop\/block \| block\.yaml:8 \| True \|  \| warning: (?<text>.*) \|$/m],
      ['junit', /file="block\.yaml" line="8"><system-out>warning: (?<text>.*)/],
      [
        'sarif',
        /"level": "warning",\s+"message": \{\s+"text": "(?<text>.*)"[^]*"uri": "block\.yaml"[^]*"startLine": 8/,
      ],
      ['github', /^::warning file=block\.yaml,line=8,title=IPBlockOfPods of shop\/block::(?<text>.*)$/m],
      [
        'json',
        /"warnings": \[\s+\{\s+"type": "IPBlockOfPods",\s+"message": "(?<text>.*)"[^]*"file": "block\.yaml",\s+"line": 8/,
      ],
      ['yaml', /warnings:\n +- type: IPBlockOfPods\n +message: '?(?<text>[^]*)/],
    ] as const) {
      const { code, stdout } = await files.netpol(
        'check',
        '-f',
        'block.yaml',
        '--provider',
        'cilium@1.20.0',
        '-o',
        format,
      );
      assert.equal(code, 0);
      const text =
        pattern.exec(stdout)?.groups?.['text']?.replaceAll(/\s+/g, ' ') ?? assert.fail(`${format}: ${stdout}`);
      assert.ok(text.startsWith(warning), `${format}: ${text}`);
      assert.doesNotMatch(stdout, /does what the policy says/);
    }
  });

  for (const [what, cidr] of [
    ['an IPv4 block', '10.161.0.0/8'],
    ['an IPv6 block', '2001:db8::1/32'],
  ] as const) {
    it(`warns of host bits in ${what}`, async () => {
      await using files = await folderOf({ 'block.yaml': BLOCK.replace('10.0.0.0/8', cidr) });
      const { code, stdout } = await files.netpol('check', '-f', '.', '--provider', 'kube-network-policies@1.1.1');
      assert.equal(code, 0);
      assert.match(
        stdout,
        /^shop\/block +block\.yaml:8 +warning: this policy has CIDRs .* is ambiguous in this context/m,
      );
    });
  }

  it('checks the whole catalogue with exit code 0', async () => {
    const { code, stdout } = await portcullis(['netpol', 'check', '-f', FIXTURE]);
    assert.equal(code, 0);
    assert.match(stdout, /^38 policies, \d\d providers: \d+ accepted \(\d+ with warnings\), \d+ not, \d+ unknown$/m);
  });

  it('says what a change fixes and breaks, and nothing for a change to the same', async () => {
    const whatIf = ['netpol', 'what-if', '-f', '-', '--provider', 'cilium@1.15.4', '--to'];
    const fixed = await portcullis([...whatIf, 'cilium@1.16.0'], { stdin: RANGE });
    assert.deepEqual([fixed.code, /^shop\/range +Fixes +EndPort +no longer: /m.test(fixed.stdout)], [0, true]);
    const same = await portcullis([...whatIf, 'cilium@1.15.4'], { stdin: RANGE });
    assert.deepEqual([same.code, same.stdout.startsWith('nothing changes; before and after, 1 of 1')], [0, true]);
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

  it('claims nothing out of silence: what no setting is known of may break, and is no fix', async () => {
    await using files = await folderOf({ 'block.yaml': BLOCK, 'all.yaml': BLOCK.replace('10.0.0.0/8', '0.0.0.0/0') });
    const whatIf = (from: string, to: string) => files.netpol('what-if', '-f', '.', '--provider', from, '--to', to);
    const other = await whatIf('calico@3.28.0', 'cilium@1.20.0');
    assert.match(
      other.stdout,
      /^shop\/block +MayBreak +IPBlockOfPods +Cilium 1\.20\.0 .* unless policy-cidr-match-mode contains "pods"/m,
    );
    const json = ['what-if', '-f', '.', '--provider', 'cilium@1.19.0', '--to', 'cilium@1.20.0', '-o', 'json'];
    const data = await files.netpol(...json);
    assert.deepEqual(JSON.parse(data.stdout), { changes: [], uncertain: ['shop/block', 'shop/block'] });
    const upgrade = await whatIf('cilium@1.19.0', 'cilium@1.20.0');
    assert.equal(
      upgrade.stdout,
      'nothing changes; before and after, 2 of 2 policies are not certainly supported: see portcullis netpol check\n',
    );
  });

  it('keeps the settings that a change does not name', async () => {
    const sctp = { policyTypes: ['Ingress'], ingress: [{ ports: [{ protocol: 'SCTP', port: 7 }] }] };
    const stdin = JSON.stringify({ ...(JSON.parse(RANGE) as object), spec: sctp });
    const whatIf = (to: string) =>
      portcullis(
        [
          'netpol',
          'what-if',
          '-f',
          '-',
          '--fail-on',
          'unknown',
          '--provider',
          'cilium@1.15.4,enable-sctp=true',
          '--to',
          to,
        ],
        { stdin },
      );
    const upgrade = await whatIf('cilium@1.16.0');
    assert.deepEqual([upgrade.code, upgrade.stdout.startsWith('nothing changes')], [0, true]);
    const off = await whatIf('cilium,enable-sctp=false');
    assert.deepEqual(
      [off.code, /Breaks +SCTP +Cilium 1\.15\.4 does not allow SCTP port 7/.test(off.stdout)],
      [1, true],
    );
  });

  it('has verdicts about blocks with the addresses that flags name, and no warning about others', async () => {
    await using files = await folderOf({ 'block.yaml': BLOCK });
    const check = (...args: readonly string[]) =>
      files.netpol('check', '-f', '.', '--provider', 'cilium@1.15.15', ...args);
    const inside = await check('--pod-cidr', '10.244.0.0/16', '--node-cidr', '192.0.2.1', '192.0.2.2');
    assert.equal(inside.code, 1);
    assert.match(
      inside.stdout,
      /^shop\/block +block\.yaml:8 +False +FailClosed +Cilium 1\.15\.15 does not match IPs of pods/m,
    );
    assert.doesNotMatch(inside.stdout, /warning/);
    const outside = await check('--pod-cidr', '100.64.0.0/10', '--node-cidr', '192.0.2.0/24');
    assert.deepEqual([outside.code, outside.stdout], [0, '1 policy, 1 provider: 1 accepted, 0 not, 0 unknown\n']);
  });

  it('fails for a folder without NetworkPolicies, and says how to look into subfolders', async () => {
    await using files = await folderOf({ 'other.json': JSON.stringify(OTHER) });
    for (const args of [
      ['check'],
      ['explain', '--provider', 'cilium@1.15.4'],
      ['check', '--provider', 'cilium@1.15.4'],
    ]) {
      const { code, stdout, stderr } = await files.netpol(...args, '-f', '.');
      assert.deepEqual([code, stdout], [1, '']);
      assert.match(stderr, /^error: \.: no NetworkPolicies\n.*-R includes subfolders/m);
    }
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
    [
      'an unknown provider',
      ['check', '-f', FIXTURE, '--provider', 'cilum@1'],
      /no provider "cilum"\nDid you mean cilium\?/,
    ],
    [
      'an unknown setting',
      ['check', '-f', FIXTURE, '--provider', 'cilium@1,a=b'],
      /cilium has no setting "a" in the catalogue\nIts settings: enable-policy/,
    ],
    ['a setting without a value', ['check', '-f', FIXTURE, '--provider', 'cilium@1,a'], /expected SETTING=VALUE/],
    [
      'a provider without a version',
      ['check', '-f', FIXTURE, '--provider', 'cilium'],
      /expected a version of cilium: .*\nAs in: --provider cilium@1/,
    ],
    [
      'an empty version',
      ['check', '-f', FIXTURE, '--provider', 'cilium@'],
      /expected a version of cilium after "@", got ""/,
    ],
    [
      'a tag that is no version',
      ['check', '-f', FIXTURE, '--provider', 'cilium@latest'],
      /expected a version of cilium after "@", got "latest"/,
    ],
    [
      'a CIDR that is none',
      ['check', '-f', FIXTURE, '--pod-cidr', '10.0.0.0/99'],
      /expected a CIDR, got "10\.0\.0\.0\/99"/,
    ],
    ['no provider to explain', ['explain', '-f', FIXTURE], /expected at least one provider/],
    ['half of a change', ['what-if', '-f', FIXTURE, '--provider', 'cilium@1'], /expected --provider and --to/],
  ] as const) {
    it(`refuses ${name}`, async () => {
      const { code, stderr } = await portcullis(['netpol', ...args]);
      assert.equal(code, 2);
      assert.match(stderr, message);
    });
  }
});

describe('a NetworkPolicy that API servers refuse', () => {
  const policy = (spec: string, more = '') =>
    `apiVersion: networking.k8s.io/v1\nkind: NetworkPolicy\nmetadata: {name: web, namespace: shop}\n${more}spec:\n  podSelector: {}\n${spec}`;
  for (const [what, text, line, message] of [
    [
      'a misspelled type',
      policy('  policyTypes: [Ingres]'),
      6,
      /"Ingres": supported values: "Ingress", "Egress": did you mean "Ingress"\?/,
    ],
    ['a lower-case type', policy('  policyTypes: [egress]'), 6, /did you mean "Egress"\?/],
    [
      'an exception outside its block',
      policy('  egress:\n  - to:\n    - ipBlock:\n        cidr: 10.0.0.0/8\n        except:\n        - 192.168.0.0/16'),
      11,
      /except\[0\]: Invalid value: "192\.168\.0\.0\/16": must be a strict subset of `cidr`/,
    ],
    [
      'an exception in the wrong mapping',
      policy('  egress:\n  - to:\n    - ipBlock: {cidr: 10.0.0.0/8}\n      except: [10.1.0.0/16]'),
      9,
      /unknown field "spec\.egress\[0\]\.to\[0\]\.except": it belongs in spec\.egress\.to\.ipBlock/,
    ],
    [
      'ports of a peer',
      policy('  ingress:\n  - from:\n    - podSelector: {}\n      ports: [{port: 80}]'),
      9,
      /\.from\[0\]\.ports": it belongs in spec\.ingress$/m,
    ],
    ['a misspelled field', policy('  egres: []'), 6, /unknown field "spec\.egres": did you mean "egress"\?/],
    ['rules outside of the spec', policy('', 'ingress: []\n'), 4, /unknown field "ingress": it belongs in spec$/m],
    ['a quoted port', policy('  ingress:\n  - ports: [{port: "80"}]'), 7, /a number is written without quotes: 80/],
    ['a fraction', policy('  ingress:\n  - ports: [{port: 80.5}]'), 7, /cannot unmarshal number 80\.5/],
    ['a mapping in place of a list', policy('  ingress: {from: []}'), 6, /cannot unmarshal object/],
    [
      'an address without a prefix',
      policy('  egress:\n  - to:\n    - ipBlock: {cidr: 10.0.0.1}'),
      8,
      /did you mean "10\.0\.0\.1\/32"\?/,
    ],
    [
      'an operator',
      policy(
        '  ingress:\n  - from:\n    - podSelector:\n        matchExpressions: [{key: a, operator: in, values: [b]}]',
      ),
      9,
      /did you mean "In"\?/,
    ],
    ['a name', policy('').replace('web', 'Web_1'), 3, /metadata\.name: Invalid value: "Web_1"/],
    ['another version', policy('').replace('io/v1', 'io/v1beta1'), 1, /did you mean "networking\.k8s\.io\/v1"\?/],
    ['another group', policy('').replace('networking.k8s.io/', ''), 1, /did you mean "networking\.k8s\.io\/v1"\?/],
    ['a misspelled kind', policy('').replace('NetworkPolicy', 'NetworkPolcy'), 2, /did you mean "NetworkPolicy"\?/],
  ] as const) {
    it(`is an error with its place: ${what}`, async () => {
      await using files = await folderOf({ 'web.yaml': text });
      const { code, stdout } = await files.netpol('check', '-f', '.');
      assert.equal(code, 1, 'also without a provider');
      assert.match(stdout, message);
      assert.match(stdout, new RegExp(`^shop/\\w+ +web\\.yaml:${line} +Refused `, 'm'));
      assert.match(stdout, /1 policy refused by API servers$/m);
    });
  }

  it('is an error in every format, and of every command', async () => {
    await using files = await folderOf({ 'web.yaml': policy('  policyTypes: [Ingres]') });
    for (const format of ['table', 'markdown', 'junit', 'sarif', 'github', 'json', 'yaml']) {
      const { code, stdout } = await files.netpol('check', '-f', '.', '-o', format);
      assert.equal(code, 1, format);
      assert.match(stdout, /did you mean (?:"|\\"|&quot;)Ingress/, format);
    }
    for (const args of [['explain'], ['what-if', '--to', 'cilium@1.20.0']]) {
      const { code, stderr } = await files.netpol(...args, '-f', '.', '--provider', 'cilium@1.15.4');
      assert.equal(code, 1);
      assert.match(stderr, /^error: web\.yaml:6: API servers refuse shop\/web: spec\.policyTypes\[0\]: /m);
    }
  });

  it('is not a NetworkPolicy of another product', async () => {
    await using files = await folderOf({
      'web.yaml': policy('').replace('networking.k8s.io/v1', 'projectcalico.org/v3'),
    });
    const { code, stderr } = await files.netpol('check', '-f', '.', '--provider', 'cilium@1.15.4');
    assert.equal(code, 1);
    assert.match(stderr, /no NetworkPolicies/);
  });
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
      /old +old\.yaml:1 +Unknown/,
    );
  });
});
