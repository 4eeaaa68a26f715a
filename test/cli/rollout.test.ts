// `portcullis rollout` on the cluster of `portcullis start`: revisions, rollout status and rollback of a policy.
import assert from 'node:assert/strict';
import { readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { after, before, describe, it } from 'node:test';
import { ANNOTATIONS } from '../../src/resources/index.ts';
import { example, guest, moduleBytes, moduleVariant } from '../server/harness.ts';
import { skipWithoutCluster } from '../cluster/binaries.ts';
import { eventually } from '../cluster/eventually.ts';
import { type CommandResult, portcullis } from './command.ts';
import { StartedPortcullis, WITHOUT_AUDITOR } from './started.ts';

const NAME = 'clusteradmissionpolicy.policies.kubewarden.io/no-latest';

function succeeded({ code, stdout, stderr }: CommandResult): string {
  assert.equal(code, 0, stderr + stdout);
  return stdout;
}

/** A policy that rejects pods with a message. */
function policy(message: string, spec: object = {}, metadata: object = {}): string {
  return JSON.stringify({
    apiVersion: 'policies.kubewarden.io/v1',
    kind: 'ClusterAdmissionPolicy',
    metadata: { name: 'no-latest', ...metadata },
    spec: {
      module: 'builtin:cel',
      mutating: false,
      rules: [{ apiGroups: [''], apiVersions: ['v1'], resources: ['pods'], operations: ['CREATE'] }],
      settings: { validations: [{ expression: 'false', message }] },
      ...spec,
    },
  });
}

function pod(name: string): string {
  const spec = { containers: [{ name: 'main', image: 'nginx' }] };
  return JSON.stringify({ apiVersion: 'v1', kind: 'Pod', metadata: { name }, spec });
}

describe('portcullis rollout', () => {
  let started: StartedPortcullis;
  before(async () => {
    started = await StartedPortcullis.start(WITHOUT_AUDITOR);
  });
  after(() => started[Symbol.asyncDispose]());

  const rollout = (...args: readonly string[]): Promise<CommandResult> => started.portcullis(['rollout', ...args]);
  const apply = async (text: string): Promise<string> =>
    succeeded(await started.portcullis(['apply', '-f', '-'], text));
  /** The message that rejects a pod. */
  const rejection = async (): Promise<string> =>
    (await started.portcullis(['apply', '-f', '-', '--dry-run'], pod('web'))).stderr;
  const status = async (): Promise<string> => succeeded(await rollout('status', 'cap/no-latest', '--timeout', '20s'));
  /** The lines of the history, split into columns. */
  const history = async (): Promise<readonly (readonly string[])[]> =>
    succeeded(await rollout('history', 'cap', 'no-latest'))
      .trimEnd()
      .split('\n')
      .map((line) => line.split(/ {3,}/));

  it('waits until a policy serves, and prints on how many replicas', async () => {
    await apply(policy('first'));
    assert.equal(await status(), `${NAME}: Active: revision 1 serves on 1 of 1 replicas\n`);
    await apply(policy('second'));
    assert.equal(await status(), `${NAME}: Active: revision 2 serves on 1 of 1 replicas\n`);
    assert.match(await rejection(), /denied the request: cap\/no-latest: second$/m);
  });

  it('lists the revisions with their causes and the digests of their modules', async () => {
    const [header, first, second, ...more] = await history();
    assert.deepEqual(header, ['REVISION', 'STATE', 'SINCE', 'CAUSE', 'DIGEST']);
    assert.deepEqual([first?.[0], first?.[1], first?.[3]], ['1', 'Retired', 'generation 1']);
    assert.deepEqual([second?.[0], second?.[1], second?.[3]], ['2', 'Serving', 'generation 2: settings']);
    assert.match(second?.[4] ?? '', /^builtin:cel@/);
    assert.deepEqual(more, []);
  });

  it('shows one revision with its spec, as text and as data', async () => {
    const text = succeeded(await rollout('history', 'cap/no-latest', '--revision', '1'));
    assert.match(text, /^Revision: +1 \(PolicyRevision portcullis\/kw\.cap\.no-latest-1\)$/m);
    assert.match(text, /^ {2}settings:$/m);
    const json = succeeded(await rollout('history', 'cap/no-latest', '--revision', '1', '-o', 'json'));
    assert.equal((JSON.parse(json) as { kind: string }).kind, 'PolicyRevision');
    const missing = await rollout('history', 'cap/no-latest', '--revision', '9');
    assert.equal(missing.code, 1);
    assert.match(missing.stderr, /has no revision 9\nThese are kept: 1, 2\./);
  });

  it('shows the difference between two revisions, with the exit codes of diff', async () => {
    const same = await rollout('diff', 'cap/no-latest');
    assert.deepEqual([same.code, same.stdout], [0, '']);
    const { code, stdout } = await rollout('diff', 'cap/no-latest', '--from', '1', '--to', '2');
    assert.equal(code, 1);
    assert.match(stdout, /^--- \S+ revision 1 \(Retired\)\n\+\+\+ \S+ revision 2 \(Serving\)\n@@ /);
    assert.match(stdout, /^- +message: first\n\+ +message: second$/m);
    assert.equal((await rollout('diff', 'cap/nobody')).code, 2);
  });

  it('reports why a change does not serve, and what to do', async () => {
    await apply(policy('third', { module: 'file:///not/there/yet.wasm' }));
    const failed = await rollout('status', 'cap/no-latest', '--timeout', '20s');
    assert.equal(failed.code, 1);
    assert.match(failed.stderr, /no-latest: Degraded: \w+: .*not\/there\/yet\.wasm/);
    assert.match(
      failed.stderr,
      /^To declare again what serves: portcullis rollout undo clusteradmissionpolicy\/no-latest$/m,
    );
    const different = await rollout('diff', 'cap/no-latest');
    assert.equal(different.code, 1);
    assert.match(different.stdout, /^\+ +module: file:\/\/\/not\/there\/yet\.wasm$/m);
    assert.match(await rejection(), /denied the request: cap\/no-latest: second$/m);
  });

  it('refuses to roll back a policy that never changed, before it asks the controller', async () => {
    const metadata = { name: 'only-once' };
    const rules = [{ apiGroups: [''], apiVersions: ['v1'], resources: ['endpoints'], operations: ['CREATE'] }];
    await apply(policy('once', { rules }, metadata));
    succeeded(await rollout('status', 'cap/only-once', '--timeout', '20s'));
    const { code, stderr } = await rollout('undo', 'cap/only-once', '--dry-run');
    assert.equal(code, 1);
    assert.match(stderr, /^error: no other revision of .*\/only-once has served\n$/);
    succeeded(await started.portcullis(['delete', 'cap', 'only-once']));
  });

  it('appears in describe: revisions, conditions, events', async () => {
    const text = succeeded(await started.portcullis(['describe', 'cap', 'no-latest']));
    assert.match(text, /^Revisions:\n {2}REVISION +STATE.*\n {2}1 +Retired.*\n {2}2 +Serving.*\n {2}3 +/m);
    assert.match(text, /^Events:\n(?: {2}.*\n)* {2}Warning +\w+ .*yet\.wasm/m);
  });

  it('rolls back to the revision before, as a new revision', async () => {
    const dry = succeeded(await rollout('undo', 'cap/no-latest', '--dry-run'));
    assert.equal(dry, `${NAME} would be rolled back to revision 2 (dry run)\n`);
    const { stdout, stderr: notes } = await rollout('undo', 'cap/no-latest');
    assert.deepEqual([stdout, notes], [`${NAME} rolled back to revision 2\n`, '']);
    assert.match(await status(), /Active: revision 4 serves/);
    const spec = succeeded(await started.portcullis(['get', 'cap', 'no-latest', '-o', 'yaml']));
    assert.match(spec, /module: builtin:cel\n/);
    assert.doesNotMatch(spec, /rollback-to/);
    const newest = (await history()).at(-1);
    assert.deepEqual([newest?.[0], newest?.[1], newest?.[3]], ['4', 'Serving', 'rollback to 2']);
  });

  it('rolls back to a given revision, if it is kept', async () => {
    assert.equal(
      succeeded(await rollout('undo', 'cap/no-latest', '--to-revision', '1')),
      `${NAME} rolled back to revision 1\n`,
    );
    await status();
    await eventually(async () => assert.match(await rejection(), /denied the request: cap\/no-latest: first$/m));
    const missing = await rollout('undo', 'cap/no-latest', '--to-revision', '99');
    assert.equal(missing.code, 1);
    assert.match(missing.stderr, /has no revision 99\nThese are kept: 1, 2, 3, 4, 5\./);
    assert.equal((await rollout('undo', 'cap/no-latest', '--to-revision', '0')).code, 2);
  });

  it('pins a revision, which serves until it is unpinned, whatever is applied', async () => {
    assert.equal(succeeded(await rollout('pin', 'cap/no-latest', '--revision', '2')), `${NAME} pinned to revision 2\n`);
    const held = `${NAME}: RolledBack: revision 2 is pinned and serves on every replica; revision 5, which the spec declares, does not\n`;
    assert.equal(await status(), held);
    await apply(policy('fourth'));
    assert.match(await status(), /RolledBack: revision 2 is pinned and serves on every replica; revision 6, /);
    assert.match(await rejection(), /denied the request: cap\/no-latest: second$/m);
    assert.ok((await history()).some(([, state]) => state === 'Serving, pinned'));
    assert.match(succeeded(await rollout('unpin', 'cap/no-latest')), /unpinned from revision 2\n$/);
    assert.match(await status(), /Active: revision 6 serves/);
    assert.match(await rejection(), /denied the request: cap\/no-latest: fourth$/m);
    assert.match(succeeded(await rollout('unpin', 'cap/no-latest')), /is not pinned\n$/);
  });

  it('refreshes modules: a new revision if they have changed', async () => {
    const file = join(started.folder, 'refreshed.wasm');
    const bytes = await moduleBytes(guest('accept'));
    const variant = (letter: string): Buffer => moduleVariant(bytes, letter);
    writeFileSync(file, variant('a'));
    const rules = [{ apiGroups: [''], apiVersions: ['v1'], resources: ['endpoints'], operations: ['CREATE'] }];
    const spec = { module: `file://${file}`, settings: {}, rules };
    await apply(policy('refreshed', spec, { name: 'refreshed' }));
    succeeded(await rollout('status', 'cap/refreshed', '--timeout', '20s'));

    const same = succeeded(await rollout('refresh', 'cap/refreshed'));
    assert.match(same, /\/refreshed: the modules of revision 1 have not changed\n$/);
    writeFileSync(file, variant('b'));
    const changed = succeeded(await rollout('refresh', 'cap/refreshed'));
    assert.match(changed, /\/refreshed: revision 2 has new modules: refreshed: sha256:\w+ instead of sha256:\w+\n$/);
    assert.match(succeeded(await rollout('status', 'cap/refreshed', '--timeout', '20s')), /Active: revision 2 serves/);
    const lines = succeeded(await rollout('history', 'cap/refreshed'));
    assert.match(lines, /\n2 +Serving +\S+ +refresh: sha256:\w{12} instead of sha256:\w{12} /);
    const kubectl = ['annotate', '--overwrite', 'cap', 'refreshed', `${ANNOTATIONS.refresh}=again`];
    succeeded(await started.kubectl(kubectl));
    succeeded(await rollout('status', 'cap/refreshed', '--timeout', '20s'));
    assert.match(
      succeeded(await started.kubectl(['get', 'cap/refreshed', '-o', 'jsonpath={.status.refreshed.result}'])),
      /^Unchanged$/,
    );

    writeFileSync(file, 'no module');
    const failed = await rollout('refresh', 'cap/refreshed');
    assert.equal(failed.code, 1);
    assert.match(failed.stderr, /revision 3 cannot serve: InvalidModule: .*revision 2 serves/s);
    assert.equal(succeeded(await rollout('undo', 'cap/refreshed')).includes('rolled back to revision 2'), true);
    succeeded(await started.portcullis(['delete', 'cap', 'refreshed']));
  });

  it('leaves a policy on its PolicyServer, also under a schema that lets the field change', async () => {
    const on = (policyServer: string): string => policy('placed', { policyServer }, { name: 'placed' });
    await apply(on('default'));
    succeeded(await rollout('status', 'cap/placed', '--timeout', '20s'));
    const refused = async (): Promise<string> => {
      const { code, stderr } = await started.kubectl(['apply', '-f', '-'], on('other'));
      assert.equal(code, 1);
      return stderr;
    };
    assert.match(await refused(), /spec\.policyServer: .*the field is immutable/);
    const rule =
      '/spec/versions/0/schema/openAPIV3Schema/properties/spec/properties/policyServer/x-kubernetes-validations/0/rule';
    const write = async (value: string): Promise<void> => {
      const patch = JSON.stringify([{ op: 'replace', path: rule, value }]);
      const crd = 'crd/clusteradmissionpolicies.policies.kubewarden.io';
      succeeded(await started.kubectl(['patch', crd, '--type=json', '-p', patch]));
    };
    await write('true');
    try {
      assert.match(
        await refused(),
        /spec\.policyServer: Forbidden: field is immutable\. Apply .*\[policy-server-change\]/,
      );
    } finally {
      await write('self == oldSelf');
    }
    succeeded(await started.portcullis(['delete', 'cap', 'placed']));
  });

  it('rolls back from protect to monitor, which an apply may not do, and back', async () => {
    const modes = (mode: string): string => policy('modes', { mode }, { name: 'modes' });
    const mode = async (): Promise<string> =>
      succeeded(await started.kubectl(['get', 'cap/modes', '-o', 'jsonpath={.spec.mode}']));
    const reached = async (): Promise<string> => succeeded(await rollout('status', 'cap/modes', '--timeout', '20s'));
    for (const each of ['monitor', 'protect']) {
      await apply(modes(each));
      await reached();
    }
    const { code, stderr } = await started.portcullis(['apply', '-f', '-'], modes('monitor'));
    assert.equal(code, 1);
    assert.match(stderr, /spec\.mode: Forbidden: field cannot transition from protect to monitor.*\[mode-change\]/);
    const undone = async (expected: string): Promise<readonly string[]> => {
      const { stdout, stderr: notes } = await rollout('undo', 'cap/modes');
      await reached();
      assert.equal(await mode(), expected);
      return [stdout.replace(/^\S+ /, ''), notes];
    };
    assert.deepEqual(await undone('monitor'), ['rolled back to revision 1\n', '']);
    // A second undo goes forward again, and says so.
    const note =
      'note: revision 3 was a rollback to 1, so this undid the rollback; to go further back, name a revision with --to-revision (kept: 1, 2, 3)\n';
    assert.deepEqual(await undone('protect'), ['rolled back to revision 2\n', note]);
    // With kubectl, the event says so.
    succeeded(await started.kubectl(['annotate', 'cap/modes', `${ANNOTATIONS.rollbackTo}=previous`]));
    const events = [
      'get',
      'events',
      '-n',
      'default',
      '--field-selector',
      'involvedObject.name=modes,reason=RolledBack',
    ];
    await eventually(async () => {
      const messages = succeeded(await started.kubectl([...events, '-o', 'jsonpath={.items[*].message}']));
      assert.match(
        messages,
        /revision 4 was a rollback to 2, so this undid the rollback; to go further back, name a revision with portcullis\.dev\/rollback-to=NUMBER/,
      );
    });
    succeeded(await started.portcullis(['delete', 'cap', 'modes']));
  });

  it('says what a number beside a policy is not', async () => {
    const { code, stderr } = await rollout('pin', 'cap/no-latest', '1');
    assert.equal(code, 2);
    assert.match(
      stderr,
      /^error: 1 is not the name of a policy\nA revision is named by a flag: --revision 1, of undo --to-revision 1/,
    );
  });

  it('warns when the pinned revision failed', async () => {
    const named = { name: 'pinned-bad' };
    const labels = (settings: object): string => policy('', { module: example('required-labels'), settings }, named);
    await apply(labels({ labels: ['owner'] }));
    succeeded(await rollout('status', 'cap/pinned-bad', '--timeout', '20s'));
    await apply(labels({ labels: 7 }));
    await rollout('status', 'cap/pinned-bad', '--timeout', '20s');
    const { code, stderr } = await rollout('pin', 'cap/pinned-bad', '--revision', '2');
    succeeded(await rollout('unpin', 'cap/pinned-bad'));
    const annotated = await started.kubectl(['annotate', 'cap/pinned-bad', `${ANNOTATIONS.pin}=2`]);
    assert.match(
      annotated.stderr,
      /^Warning: .*revision 2 failed \(InvalidSettings\): the last good one serves as long as it is pinned \[pin-failed\]$/m,
    );
    assert.equal(code, 0);
    assert.match(
      stderr,
      /^warning: revision 2 failed, so the last good one serves as long as it is pinned: InvalidSettings: /,
    );
    succeeded(await started.portcullis(['delete', 'cap', 'pinned-bad']));
  });

  it('leaves the spec to those who own it, so that they can apply it again', async () => {
    const named = { name: 'owned' };
    const selector = { matchLabels: { checked: 'yes' } };
    const first = policy('first', { objectSelector: selector }, named);
    const second = policy('second', {}, named);
    for (const options of [[], ['--server-side']]) {
      for (const text of [first, second]) {
        succeeded(await started.kubectl(['apply', '-f', '-', ...options], text));
        succeeded(await rollout('status', 'cap/owned', '--timeout', '20s'));
      }
      const { stderr } = await rollout('undo', 'cap/owned');
      assert.equal(stderr, '');
      const spec = [
        'get',
        'cap/owned',
        '-o',
        'jsonpath={.spec.objectSelector} {.spec.settings.validations[0].message}',
      ];
      assert.equal(succeeded(await started.kubectl(spec)), '{"matchLabels":{"checked":"yes"}} first');
      succeeded(await started.kubectl(['apply', '-f', '-', ...options], second));
      assert.equal(succeeded(await started.kubectl(spec)), ' second');
      succeeded(await started.portcullis(['delete', 'cap', 'owned']));
    }
  });

  it('finds policies of a namespace', async () => {
    const kind = { kind: 'AdmissionPolicy', metadata: { name: 'own', namespace: 'kube-public' } };
    await apply(JSON.stringify({ ...JSON.parse(policy('mine')), ...kind }));
    const own = ['ap/own', '-n', 'kube-public'];
    assert.match(succeeded(await rollout('status', ...own)), /^admissionpolicy\..*\/own: Active: revision 1 /);
    assert.match(succeeded(await rollout('history', ...own)), /\n1 +Serving /);
    assert.equal((await rollout('history', 'ap/own')).code, 1);
  });

  it('finds a policy by its name alone', async () => {
    assert.match(succeeded(await rollout('status', 'no-latest')), /: Active: revision \d+ serves/);
  });

  it('takes one policy', async () => {
    for (const [args, message] of [
      [['status', 'cm/one'], /configmap\/one has no rollout: expected a policy/],
      [['status', 'cap'], /expected one policy/],
      [['status', 'cap', 'one', 'two'], /expected one policy/],
    ] as const) {
      const { code, stderr } = await rollout(...args);
      assert.equal(code, 2);
      assert.match(stderr, message);
    }
  });

  describe('for users who may only read and change policies', { skip: skipWithoutCluster() }, () => {
    let kubeconfig = '';
    const limited = (...args: readonly string[]): Promise<CommandResult> =>
      portcullis(['rollout', ...args], { env: { KUBECONFIG: kubeconfig, HOME: started.home } });

    before(async () => {
      const rbac = { apiVersion: 'rbac.authorization.k8s.io/v1', metadata: { name: 'tenant' } };
      const rules = [
        { apiGroups: ['policies.kubewarden.io'], resources: ['clusteradmissionpolicies'], verbs: ['get', 'patch'] },
      ];
      const subjects = [{ kind: 'ServiceAccount', name: 'tenant', namespace: 'default' }];
      const roleRef = { apiGroup: 'rbac.authorization.k8s.io', kind: 'ClusterRole', name: 'tenant' };
      for (const object of [
        { apiVersion: 'v1', kind: 'ServiceAccount', metadata: { name: 'tenant', namespace: 'default' } },
        { ...rbac, kind: 'ClusterRole', rules },
        { ...rbac, kind: 'ClusterRoleBinding', subjects, roleRef },
      ]) {
        await apply(JSON.stringify(object));
      }
      const token = succeeded(await started.kubectl(['create', 'token', 'tenant'])).trim();
      kubeconfig = join(started.folder, 'tenant');
      writeFileSync(kubeconfig, readFileSync(started.kubeconfig, 'utf8').replace(/"?token"?: .*/, `token: ${token}`));
    });

    it('rolls back, pins and reports the status', async () => {
      assert.match(succeeded(await limited('status', 'cap/no-latest')), /Active: revision 6 /);
      succeeded(await limited('pin', 'cap/no-latest'));
      succeeded(await limited('unpin', 'cap/no-latest'));
      succeeded(await limited('undo', 'cap/no-latest', '--to-revision', '2'));
      assert.match(succeeded(await limited('status', 'cap/no-latest', '--timeout', '20s')), /Active: revision 7 /);
    });

    it('reports a revision that the controller does not find', async () => {
      const missing = await limited('undo', 'cap/no-latest', '--to-revision', '99');
      assert.equal(missing.code, 1, missing.stdout);
      assert.match(missing.stderr, /the controller did not change .*\n.*or that revision is not kept/);
    });
  });

  describe('for authors who may only read the policies of their namespace', { skip: skipWithoutCluster() }, () => {
    const NOTE = /^note: you may not read PolicyRevisions in namespace portcullis: .*at most 10 revisions$/m;
    const own = (message: string, spec: object = {}): string => {
      const one = JSON.parse(policy(message, spec)) as object;
      return JSON.stringify({
        ...one,
        kind: 'AdmissionPolicy',
        metadata: { name: 'theirs', namespace: 'kube-public' },
      });
    };
    let environment = {};
    const author = (...args: readonly string[]): Promise<CommandResult> =>
      portcullis([...args, '-n', 'kube-public'], { env: environment });
    const change = async (text: string): Promise<void> => {
      await apply(text);
      await rollout('status', 'ap/theirs', '-n', 'kube-public', '--timeout', '20s');
    };

    before(async () => {
      const subjects = [{ kind: 'ServiceAccount', name: 'author', namespace: 'kube-public' }];
      const rbac = {
        apiVersion: 'rbac.authorization.k8s.io/v1',
        metadata: { name: 'author', namespace: 'kube-public' },
      };
      const roleRef = { apiGroup: 'rbac.authorization.k8s.io', kind: 'Role', name: 'author' };
      const rules = [
        { apiGroups: ['policies.kubewarden.io'], resources: ['admissionpolicies'], verbs: ['get', 'list'] },
      ];
      for (const object of [
        { apiVersion: 'v1', kind: 'ServiceAccount', metadata: { name: 'author', namespace: 'kube-public' } },
        { ...rbac, kind: 'Role', rules },
        { ...rbac, kind: 'RoleBinding', subjects, roleRef },
      ]) {
        await apply(JSON.stringify(object));
      }
      const token = succeeded(await started.kubectl(['create', 'token', 'author', '-n', 'kube-public'])).trim();
      const kubeconfig = join(started.folder, 'author');
      writeFileSync(kubeconfig, readFileSync(started.kubeconfig, 'utf8').replace(/"?token"?: .*/, `token: ${token}`));
      environment = { KUBECONFIG: kubeconfig, HOME: started.home };
      for (const message of ['first', 'second', 'third']) {
        await change(own(message));
      }
      await change(own('fourth', { module: 'https://policies.invalid/yet.wasm' }));
    });

    it('says what serves: modules, digests and settings', async () => {
      const serving = succeeded(await author('get', 'ap', 'theirs', '-o', 'json'));
      const { status } = JSON.parse(serving) as { status: { serving: { modules: { settings: string }[] } } };
      const { modules, ...rest } = status.serving;
      assert.partialDeepStrictEqual(rest, { revision: 3 });
      assert.deepEqual(
        modules.map(({ settings, ...module }) => ({ ...module, settings: JSON.parse(settings) as unknown })),
        [
          {
            name: 'theirs',
            module: 'builtin:cel',
            digest: modules[0] && (modules[0] as { digest?: string }).digest,
            settings: { validations: [{ expression: 'false', message: 'third' }] },
          },
        ],
      );
      assert.match(serving, /"digest": "builtin:cel@/);
    });

    it('lists the revisions, as the administrator sees them', async () => {
      const { code, stdout, stderr } = await author('rollout', 'history', 'ap/theirs');
      assert.equal(code, 0, stderr);
      assert.match(stderr, NOTE);
      const withoutAges = (text: string): readonly (readonly string[])[] =>
        text.split('\n').map((line) => line.split(/ {3,}/).toSpliced(2, 1));
      const all = succeeded(await rollout('history', 'ap/theirs', '-n', 'kube-public'));
      assert.deepEqual(withoutAges(stdout), withoutAges(all));
      assert.match(stdout, /\n3 +Serving +\S+ +generation 3: settings +builtin:cel@/);
      assert.match(stdout, /\n4 +Candidate +\S+ +generation 4: module, settings \(FetchFailed\)/);
      const listed = succeeded(await author('rollout', 'history', 'ap/theirs', '-o', 'json'));
      assert.equal((JSON.parse(listed) as readonly object[]).length, 4);
      assert.match(
        succeeded(await author('describe', 'ap', 'theirs')),
        /^Revisions:\n {2}REVISION +STATE.*\n {2}1 +Ret/m,
      );
    });

    it('shows the difference between what serves and what is declared, and between earlier revisions', async () => {
      const declared = await author('rollout', 'diff', 'ap/theirs');
      assert.equal(declared.code, 1, declared.stderr);
      assert.match(declared.stderr, NOTE);
      assert.match(declared.stdout, /^--- \S+ revision 3 \(Serving\)\n\+\+\+ \S+ revision 4 \(Candidate\)\n@@ /);
      assert.match(declared.stdout, /^- +module: builtin:cel\n\+ +module: https:\/\/policies\.invalid\/yet\.wasm$/m);
      const earlier = await author('rollout', 'diff', 'ap/theirs', '--from', '2', '--to', '3');
      assert.equal(earlier.code, 1, earlier.stderr);
      assert.match(earlier.stdout, /^- +message: second\n\+ +message: third$/m);
    });

    it('says which revisions the status does not contain', async () => {
      await change(own('fifth'));
      await change(own('sixth'));
      const { code, stderr } = await author('rollout', 'diff', 'ap/theirs', '--from', '1');
      assert.equal(code, 2);
      assert.match(stderr, /the status of \S+\/theirs does not contain the spec of revision 1\n/);
      assert.match(
        stderr,
        /those of revisions 3, 4, 5, 6\..*verb list on policyrevisions\.portcullis\.dev in namespace port/,
      );
      const first = succeeded(await author('rollout', 'history', 'ap/theirs', '--revision', '1'));
      assert.match(first, /^Spec: +not in the status of the policy$/m);
      const fifth = succeeded(await author('rollout', 'history', 'ap/theirs', '--revision', '5'));
      assert.match(fifth, /^Spec:\n(?: .*\n)* +message: fifth$/m);
      const missing = await author('rollout', 'history', 'ap/theirs', '--revision', '9');
      assert.match(missing.stderr, /has no revision 9\nThese are kept: 1, 2, 3, 4, 5, 6\./);
      assert.match(succeeded(await author('rollout', 'status', 'ap/theirs')), /Active: revision 6 serves/);
    });
  });
});
