// `portcullis run` as a process.
import assert from 'node:assert/strict';
import { mkdtemp, readFile, rm, writeFile } from 'node:fs/promises';
import { createServer } from 'node:http';
import type { AddressInfo } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { after, before, describe, it } from 'node:test';
import { wat } from '../../src/wasm/testing/wat.ts';
import { type CommandOptions, type CommandResult, EXAMPLES, GUESTS, portcullis, REQUEST, ROOT } from './command.ts';

interface Response {
  readonly uid: string;
  readonly allowed: boolean;
  readonly patch?: string;
  readonly status?: { readonly message?: string; readonly code?: number };
}

const run = (args: readonly string[], options?: CommandOptions): Promise<CommandResult> =>
  portcullis(['run', ...args], options);
const responseOf = ({ stdout, stderr }: CommandResult): Response => {
  assert.notEqual(stdout, '', stderr);
  return JSON.parse(stdout) as Response;
};
const LABELS = `${EXAMPLES}/required-labels`;
const SETTINGS = ['--settings-json', '{"labels":["app.kubernetes.io/name"]}'];
const OWNER = `${EXAMPLES}/namespace-owner`;
/** A policy that looks up a host, and answers with an error that is the host's. */
const HANDS_ON_ERRORS = `(module
  (import "wapc" "__guest_response" (func $respond (param i32 i32)))
  (import "wapc" "__guest_error" (func $error (param i32 i32)))
  (import "wapc" "__host_call" (func $call (param i32 i32 i32 i32 i32 i32 i32 i32) (result i32)))
  (import "wapc" "__host_error_len" (func $error_length (result i32)))
  (import "wapc" "__host_error" (func $host_error (param i32)))
  (memory (export "memory") 1)
  (data (i32.const 0) "{\\"accepted\\":true}{\\"valid\\":true}\\"v1\\"")
  (data (i32.const 64) "kubewarden" "net" "v1/dns_lookup_host" "\\"nowhere\\"")
  (func (export "wapc_init"))
  (func (export "__guest_call") (param $operation i32) (param i32) (result i32)
    (if (i32.eq (local.get $operation) (i32.const 16))
      (then (call $respond (i32.const 31) (i32.const 4)) (return (i32.const 1))))
    (if (i32.eq (local.get $operation) (i32.const 17))
      (then (call $respond (i32.const 17) (i32.const 14)) (return (i32.const 1))))
    (if (call $call (i32.const 64) (i32.const 10) (i32.const 74) (i32.const 3)
        (i32.const 77) (i32.const 18) (i32.const 95) (i32.const 9))
      (then (call $respond (i32.const 0) (i32.const 17)) (return (i32.const 1))))
    (call $host_error (i32.const 1024))
    (call $error (i32.const 1024) (call $error_length))
    (i32.const 0)))`;
const GUEST = (name: string): string => `${GUESTS}/${name}.wasm`;

let folder = '';
before(async () => {
  folder = await mkdtemp(join(tmpdir(), 'portcullis-run-'));
});
after(() => rm(folder, { recursive: true }));
const file = async (name: string, text: string | Uint8Array): Promise<string> => {
  await writeFile(join(folder, name), text);
  return join(folder, name);
};

describe('portcullis run', { concurrency: 2 }, () => {
  it('prints the response alone, on one line, and exits with 0 on a denial', async () => {
    const result = await run([
      `${LABELS}/policy.wasm`,
      '-r',
      REQUEST,
      '-s',
      await file('settings.yml', 'labels: [app.kubernetes.io/name]'),
    ]);
    assert.equal(result.code, 0);
    assert.equal(result.stderr, '');
    assert.equal(result.stdout.indexOf('\n'), result.stdout.length - 1);
    const { uid, allowed, status } = responseOf(result);
    assert.equal(uid, '5ad32a9d-9a14-4a6c-8f0e-1f5b4b6f4a02');
    assert.equal(allowed, false);
    assert.match(status?.message ?? '', /has no label/);
  });

  it('with --fail-on deny exits with 1 on a denial, and with 0 otherwise', async () => {
    const flags = [...SETTINGS, '--fail-on', 'deny'];
    const denied = await run([`${LABELS}/policy.wasm`, '-r', REQUEST, ...flags]);
    assert.equal(denied.code, 1);
    assert.equal(responseOf(denied).allowed, false);
    const admitted = await run([`${LABELS}/policy.wasm`, '-r', `${LABELS}/requests/admitted.json`, ...flags]);
    assert.equal(admitted.code, 0);
    assert.equal(responseOf(admitted).allowed, true);
  });

  it('says how to create a pod when it is called as kubectl run', async () => {
    for (const image of [['--image=nginx'], ['--image', 'nginx', '--dry-run=server']]) {
      const { code, stderr } = await run(['web', ...image]);
      assert.equal(code, 2);
      assert.match(stderr, /^error: --image: run evaluates a request .*\n.*portcullis apply -f pod\.yaml/);
    }
  });

  it('takes an AdmissionRequest in YAML from standard input, and settings as an argument', async () => {
    const { request } = JSON.parse(await readFile(join(ROOT, REQUEST), 'utf8')) as { request: Record<string, unknown> };
    const yaml = Object.entries(request).map(([key, value]) => `${key}: ${JSON.stringify(value)}`);
    const settings = ['--settings-json', '{"labels":["tier"]}'];
    const result = await run([`${LABELS}/policy.wasm`, '--request-path', '-', ...settings], { stdin: yaml.join('\n') });
    assert.equal(responseOf(result).allowed, true);
  });

  it('prints YAML, patches included', async () => {
    const mutating = `${EXAMPLES}/default-seccomp`;
    const args = [`${mutating}/policy.wasm`, '-r', `${mutating}/requests/mutated.json`, '-o', 'yaml'];
    const { stdout, code } = await run(args);
    assert.equal(code, 0);
    assert.match(stdout, /^allowed: true$/m);
    assert.match(stdout, /^patchType: JSONPatch$/m);
  });

  for (const example of ['image-registries', 'host-namespaces', 'container-limits']) {
    it(`runs ${example}`, async () => {
      const path = join(EXAMPLES, example);
      const monitored = await run([join(path, 'policy.yaml'), '-r', `${path}/requests/rejected.json`]);
      assert.equal(responseOf(monitored).allowed, example === 'image-registries', 'which is in monitor mode');
    });
  }

  it('passes raw requests on unchanged', async () => {
    const script = JSON.stringify({ answer: '{"accepted":false,"message":"raw it is"}', log: 'a line of the log' });
    const result = await run([GUEST('scripted-answer'), '--raw', '-r', '-'], { stdin: script });
    assert.equal(responseOf(result).status?.message, 'raw it is');
    assert.match(result.stderr, /info +scripted-answer: a line of the log/);
    const quiet = await run([GUEST('scripted-answer'), '--raw', '-r', '-', '--log-level', 'error'], { stdin: script });
    assert.equal(quiet.stderr, '');
  });

  it('runs policies and groups of a policies file', async () => {
    const policies = ['--policies', `${EXAMPLES}/policies.yml`];
    const request = ['-r', `${EXAMPLES}/pod-privileged/requests/rejected.json`];
    const group = await run([...policies, '--policy', 'team-or-unprivileged', ...request]);
    assert.match(group.stdout, /"field":"spec.policies.unprivileged"/);
    const monitored = await run([...policies, '--policy', 'team-label', ...request, '--timeout', '20']);
    assert.equal(responseOf(monitored).allowed, true);
    const unknown = await run([...policies, '--policy', 'nope', ...request]);
    assert.equal(unknown.code, 1);
    assert.match(unknown.stderr, /has no policy "nope"\nIt has team-label, /);
    const unnamed = await run([...policies, ...request]);
    assert.equal(unnamed.code, 2);
    assert.match(unnamed.stderr, /\d+ policies: expected --policy/);
  });

  it('warns of fields that the kind of the request does not have, in settings and policies files', async () => {
    const settings = 'validations:\n      - expression: object.spec.volumes.all(v, !has(v.hostpath))\n';
    const pod = '{apiVersion: v1, kind: Pod, metadata: {name: web}, spec: {volumes: [{name: data}]}}';
    const request = ['-r', await file('volumes-pod.yaml', pod)];
    const alone = await file('volumes.yml', settings);
    const entry = await file('volumes-policies.yml', `volumes:\n  module: builtin:cel\n  settings:\n    ${settings}`);
    const results = await Promise.all([
      run(['builtin:cel', ...request, '-s', alone]),
      run(['--policies', entry, ...request]),
    ]);
    for (const result of results) {
      assert.equal(responseOf(result).allowed, true);
    }
    const message = "undefined field 'hostpath' at 1:32, in v1 Pod: did you mean 'hostPath'?\n";
    assert.deepEqual(
      results.map(({ stderr }) => stderr),
      [
        `warning: ${alone}:2:52 settings.validations[0].expression: ${message}`,
        `warning: ${entry}:5:52 volumes: settings.validations[0].expression: ${message}`,
      ],
    );
  });

  it('evaluates the policy of a manifest with its module and settings, chosen by name of several', async () => {
    const request = ['-r', `${EXAMPLES}/pod-privileged/requests/rejected.json`];
    const one = await run([`${EXAMPLES}/pod-privileged/policy.yaml`, ...request, '--fail-on', 'deny']);
    assert.equal(one.code, 1);
    assert.match(responseOf(one).status?.message ?? '', /privileged containers are not allowed/);
    const [own, other] = ['pod-privileged', 'privileged-by-exception'].map((name) => `${EXAMPLES}/${name}/policy.yaml`);
    const manifests = [own ?? '', '--manifests', other ?? ''];
    const unnamed = await run([...manifests, ...request]);
    assert.equal(unnamed.code, 2);
    assert.match(unnamed.stderr, /2 policies: expected --policy .*\nIt has cap\/pod-privileged, capg\/privileged-by-/);
    const elsewhere = await run([...manifests, ...request, '--policy', 'capg/privileged-by-exception']);
    assert.equal(elsewhere.code, 0, elsewhere.stderr);
  });

  it('answers as an API server does when the policy does not match the request, unless told otherwise', async () => {
    const args = [`${EXAMPLES}/replica-limit/policy.yaml`, '-r', `${EXAMPLES}/pinned-images/requests/rejected.json`];
    const unmatched = await run([...args, '--fail-on', 'deny']);
    assert.equal(unmatched.code, 0);
    assert.equal(responseOf(unmatched).allowed, true);
    assert.match(
      unmatched.stderr,
      /^note: cap\/replica-limit does not match the request: no rule is for CREATE of pods \(resources: deployments\)\./,
    );
    const ignored = await run([...args, '--ignore-rules']);
    assert.equal(responseOf(ignored).allowed, false);
    assert.match(ignored.stderr, /^note: cap\/replica-limit does not match the request/);
  });

  it('takes manifests from standard input, and says where they are wrong', async () => {
    const text = await readFile(`${EXAMPLES}/pinned-images/policy.yaml`, 'utf8');
    const request = ['-r', `${EXAMPLES}/pinned-images/requests/rejected.json`];
    const admitted = await run(['-', ...request], { stdin: text });
    assert.equal(responseOf(admitted).allowed, false);
    const wrong = await run(['-', ...request], { stdin: text.replace('mutating', 'mutatin') });
    assert.equal(wrong.code, 1);
    assert.match(
      wrong.stderr,
      /standard input:\d+:3 ClusterAdmissionPolicy pinned-images: spec\.mutatin: unknown field, did/,
    );
    const settings = await run(['-', ...request, '--settings-json', '{}'], { stdin: text });
    assert.equal(settings.code, 2);
    assert.match(settings.stderr, /--settings-json cannot be used with manifests: the policy is defined there/);
  });

  it('shows where an entry of a policies file is wrong', async () => {
    const path = await file(
      'policies.yml',
      'good:\n  module: file:///x.wasm\nbad:\n  module: file:///x.wasm\n  setings: {}\n',
    );
    const { stderr, code } = await run(['--policies', path, '--policy', 'bad', '-r', REQUEST]);
    assert.equal(code, 1);
    assert.match(stderr, /policies\.yml:5:3 setings: /);
  });

  it('answers context-aware policies from a recorded session', async () => {
    const args = [`${OWNER}/policy.wasm`, '--settings-json', '{"label":"owner"}', '--allow-context-aware'];
    const replay = ['--replay-host-capabilities-interactions', `${OWNER}/session.yml`];
    const rejected = await run([...args, ...replay, '-r', `${OWNER}/requests/rejected.json`]);
    assert.match(responseOf(rejected).status?.message ?? '', /has no label "owner"/);
    assert.equal(rejected.code, 0);
    const admitted = await run([...args, ...replay, '-r', `${OWNER}/requests/admitted.json`]);
    assert.equal(responseOf(admitted).allowed, true);
  });

  it('takes an error of the recorded session that the policy hands on for a rejection', async () => {
    const module = await file('hands-on.wasm', wat(HANDS_ON_ERRORS));
    const session = (error: string): Promise<string> =>
      file(
        'errors.yml',
        `- type: Exchange\n  request: "!DNSLookupHost\\nhost: nowhere\\n"\n  response: {type: Error, message: ${error}}\n`,
      );
    const args = [module, '-e', 'kubewarden', '-r', REQUEST, '--replay-host-capabilities-interactions'];
    const rejected = await run([...args, await session('cannot find nowhere')]);
    assert.equal(rejected.code, 0, rejected.stderr);
    assert.equal(responseOf(rejected).allowed, false);
    assert.match(responseOf(rejected).status?.message ?? '', /cannot find nowhere/);
    const denied = await run([...args, await session('cannot find nowhere'), '--fail-on', 'deny']);
    assert.equal(denied.code, 1);
    const unanswered = await run([...args, await file('empty.yml', '[]')]);
    assert.equal(unanswered.code, 1);
    assert.match(unanswered.stderr, /gave no verdict/);
  });

  it('reports what a context-aware policy lacks', async () => {
    const args = [
      `${OWNER}/policy.wasm`,
      '-r',
      `${OWNER}/requests/rejected.json`,
      '--settings-json',
      '{"label":"owner"}',
    ];
    const withoutCluster = await run([...args, '--allow-context-aware']);
    assert.equal(withoutCluster.code, 1);
    assert.equal(responseOf(withoutCluster).allowed, false);
    assert.match(
      withoutCluster.stderr,
      /there is no cluster to answer it[^]*--replay-host-capabilities-interactions FILE/,
    );
    const withoutGrant = await run(args);
    assert.equal(withoutGrant.code, 0);
    assert.match(withoutGrant.stderr, /note: the policy reads v1\/Namespace .* --allow-context-aware/);
  });

  it('answers, records and replays host capabilities, and grants only those of the flag', async () => {
    const session = join(folder, 'session.yml');
    const question = (payload: string): CommandOptions => ({
      stdin: JSON.stringify({ binding: 'kubewarden', ns: 'net', op: 'v1/dns_lookup_host', payload }),
    });
    const args = [GUEST('echo-host-call'), '--raw', '-r', '-'];
    const recorded = await run([...args, '--record-host-capabilities-interactions', session], question('localhost'));
    assert.match(responseOf(recorded).status?.message ?? '', /"ips":\[/);
    assert.match(await readFile(session, 'utf8'), /!DNSLookupHost\n +host: localhost/);
    const replay = ['--replay-host-capabilities-interactions', session];
    const replayed = await run([...args, ...replay], question('localhost'));
    assert.equal(replayed.stdout, recorded.stdout);
    const other = await run([...args, ...replay], question('example.com'));
    assert.match(responseOf(other).status?.message ?? '', /the recorded session has no answer/);
    for (const patterns of ['crypto/*,kubernetes/can_i', '']) {
      const refused = await run([...args, '--allowed-host-capabilities', patterns], question('localhost'));
      assert.match(
        responseOf(refused).status?.message ?? '',
        /may not use the host capability net\/v1\/dns_lookup_host/,
      );
    }
  });

  it('downloads modules, verifies pins, and uses its cache when the server is down', async () => {
    const module = await readFile(join(ROOT, GUEST('accept')));
    const server = createServer((request, response) => {
      response.statusCode = request.url === '/accept.wasm' ? 200 : 404;
      response.end(request.url === '/accept.wasm' ? module : 'no');
    });
    await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
    const origin = `http://127.0.0.1:${(server.address() as AddressInfo).port}`;
    const env = { XDG_CACHE_HOME: join(folder, 'cache') };
    try {
      assert.equal(responseOf(await run([`${origin}/accept.wasm`, '-r', REQUEST], { env })).allowed, true);
      const missing = await run([`${origin}/nope.wasm`, '-r', REQUEST], { env });
      assert.equal(missing.code, 1);
      assert.match(missing.stderr, /nope\.wasm answered 404/);
    } finally {
      server.closeAllConnections();
      server.close();
    }
    const cached = await run([`${origin}/accept.wasm`, '-r', REQUEST], { env });
    assert.equal(responseOf(cached).allowed, true);
    assert.match(cached.stderr, /note: using the cached copy of http.*accept\.wasm/);
    const pinned = await run([`${GUEST('accept')}@sha256:${'0'.repeat(64)}`, '-r', REQUEST]);
    assert.equal(pinned.code, 1);
    assert.match(pinned.stderr, /is not the pinned module/);
  });
});

describe('portcullis run, given a policy that misbehaves', { concurrency: 2 }, () => {
  for (const guest of ['loop-in-validate', 'trap', 'guest-error']) {
    it(`prints the answer of a server to ${guest}, and exits with 1`, async () => {
      const result = await run([GUEST(guest), '-r', REQUEST, '--timeout', '3']);
      assert.equal(result.code, 1);
      const { allowed, status } = responseOf(result);
      assert.equal(allowed, false);
      assert.equal(status?.code, 500);
      assert.match(result.stderr, new RegExp(`^error: ${guest} gave no verdict`));
    });
  }

  it('ends a guest that uses no fuel', async () => {
    const result = await run([GUEST('wasi-loop'), '-r', REQUEST, '--timeout', '1']);
    assert.equal(result.code, 1);
    assert.match(result.stderr, /wasi-loop .*checking its settings/);
  });

  const cases: readonly (readonly [guest: string, message: RegExp])[] = [
    ['settings-refused', /^error: Provided settings are not valid: these settings are refused\n/],
    ['loop-in-settings', /loop-in-settings .*checking its settings/],
    ['trap-in-settings', /trap-in-settings failed while it was checking its settings: .*trapped/],
    ['loop-in-start', /loop-in-start failed while it was loading/],
    ['protocol-v2', /protocol-v2\.wasm: expected .* protocolVersion "v1", got "v2"/],
    ['minimum-version-99', /needs Kubewarden 99/],
    ['unknown-import', /env\.mystery/],
    ['big-memory', /pages of memory/],
  ];
  for (const [guest, message] of cases) {
    it(`refuses ${guest}`, async () => {
      const { code, stdout, stderr } = await run([GUEST(guest), '-r', REQUEST, '--timeout', '3']);
      assert.equal(code, 1);
      assert.equal(stdout, '');
      assert.match(stderr, message);
    });
  }

  it('runs a module that is not annotated yet, with a note that a server would refuse it', async () => {
    const result = await run([GUEST('no-metadata'), '-r', REQUEST, '-e', 'kubewarden']);
    assert.equal(responseOf(result).allowed, true);
    assert.match(result.stderr, /note: a policy server refuses this module/);
  });
});

describe('portcullis run, given bad input', { concurrency: 2 }, () => {
  const accept = GUEST('accept');
  const cases: readonly {
    readonly what: string;
    readonly args: readonly string[];
    readonly stdin?: string;
    readonly code: 1 | 2;
    readonly message: RegExp;
  }[] = [
    {
      what: 'a module that is not there',
      args: ['nope.wasm', '-r', REQUEST],
      code: 1,
      message: /nope\.wasm cannot be read/,
    },
    { what: 'a module that is none', args: ['README.md', '-r', REQUEST], code: 1, message: /not a WebAssembly module/ },
    {
      what: 'a registry that is down',
      args: ['registry://localhost:1/p:v1', '-r', REQUEST],
      code: 1,
      message: /registry:\/\/localhost:1\/p:v1 cannot be reached/,
    },
    { what: 'another execution mode', args: [accept, '-r', REQUEST, '-e', 'opa'], code: 1, message: /opa was chosen/ },
    { what: 'no request', args: [accept], code: 2, message: /required option '-r/ },
    {
      what: 'a request that is not there',
      args: [accept, '-r', 'nope.json'],
      code: 1,
      message: /nope\.json cannot be read/,
    },
    {
      what: 'broken JSON',
      args: [accept, '-r', '-'],
      stdin: '{"a": [1,',
      code: 1,
      message: /standard input:1:10 is not JSON/,
    },
    { what: 'an empty request', args: [accept, '-r', '-'], code: 1, message: /standard input is empty/ },
    {
      what: 'a request of another shape',
      args: [accept, '-r', '-'],
      stdin: '{}',
      code: 1,
      message: /request\.uid.*\nExpected is/,
    },
    {
      what: 'a tower of brackets',
      args: [accept, '-r', '-'],
      stdin: `{"request":${'['.repeat(100_000)}${']'.repeat(100_000)}}`,
      code: 1,
      message: /nested too deep/,
    },
    {
      what: 'settings that are no mapping',
      args: [accept, '-r', REQUEST, '--settings-json', '[]'],
      code: 2,
      message: /--settings-json: expected a mapping/,
    },
    {
      what: 'a timeout of nothing',
      args: [accept, '-r', REQUEST, '--timeout', '0'],
      code: 2,
      message: /whole seconds/,
    },
    {
      what: 'a capability that is none',
      args: [accept, '-r', REQUEST, '--allowed-host-capabilities', 'NET'],
      code: 2,
      message: /--allowed-host-capabilities: expected/,
    },
    {
      what: 'a session that is none',
      args: [accept, '-r', REQUEST, '--replay-host-capabilities-interactions', 'package.json'],
      code: 1,
      message: /recorded session cannot be read/,
    },
    {
      what: 'settings beside a policies file',
      args: ['--policies', 'x.yml', '-r', REQUEST, '-s', 'x.json'],
      code: 2,
      message: /cannot be used with/,
    },
    {
      what: 'flags for signatures that ask for too little',
      args: [accept, '-r', REQUEST, '--cert-email', 'a@example.com'],
      code: 2,
      message: /--cert-email and --cert-oidc-issuer need each other/,
    },
    { what: 'an unknown flag', args: [accept, '-r', REQUEST, '--bogus'], code: 2, message: /unknown option '--bogus'/ },
  ];
  for (const { what, args, stdin = '', code, message } of cases) {
    it(`refuses ${what}`, async () => {
      const result = await run(args, { stdin });
      assert.match(result.stderr, message);
      assert.equal(result.code, code);
      assert.equal(result.stdout, '');
    });
  }
});
