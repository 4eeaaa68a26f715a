import assert from 'node:assert/strict';
import { mkdtempDisposable, readdir, readFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { describe, it } from 'node:test';
import { setTimeout as sleep } from 'node:timers/promises';
import { setFlagsFromString } from 'node:v8';
import { runInThisContext } from 'node:vm';
import binaryen from 'binaryen';
import { fileURLToPath } from 'node:url';
import { digestOf, writeMetadata } from '../../modules/index.ts';
import { DEFAULT_SOURCES } from '../../modules/sources/index.ts';
import { silentCapabilities } from '../testing/worker-tables.ts';
import { Loader, MAX_OUTCOMES } from './loader.ts';
import type { FailedStage, LoadOutcome, LoadRequest, ProvidedModule } from './load-request.ts';

const guests = fileURLToPath(new URL('../../../test/fixtures/guests', import.meta.url));
/** Short, so that what does not end is cut off soon. */
const TIMEOUT_SECONDS = 0.4;
/** Never ends. */
const endless = `endless:\n  module: file://${guests}/wasi-loop.wasm\n`;
/** Policies that need no module. */
const many = (count: number): string =>
  Array.from(
    { length: count },
    (_, index) => `p${index}: {module: builtin:pod-security, settings: {level: baseline}}\n`,
  ).join('');
const accept = `accept:\n  module: file://${guests}/accept.wasm\n`;

async function setUp(): Promise<
  {
    loader: Loader;
    load: (
      text: string,
      rest?: Partial<LoadRequest>,
      outcomes?: Map<string, LoadOutcome>,
    ) => Promise<Map<string, LoadOutcome>>;
    connections: () => number;
    folder: string;
  } & AsyncDisposable
> {
  const folder = await mkdtempDisposable(join(tmpdir(), 'portcullis-loader-'));
  let connections = 0;
  const loader = new Loader(
    {
      cacheDir: join(folder.path, 'modules'),
      baseDir: folder.path,
      sources: { ...DEFAULT_SOURCES, tenantModules: ['*'] },
      fetchTimeoutMs: undefined,
      defaultTimeoutSeconds: TIMEOUT_SECONDS,
      memoryLimitBytes: 64 * 1024 * 1024,
      recordFolder: folder.path,
      modules: () => [],
      connectCapabilities: () => {
        connections += 1;
        return silentCapabilities();
      },
    },
    () => undefined,
  );
  const load = async (
    text: string,
    rest: Partial<LoadRequest> = {},
    outcomes = new Map<string, LoadOutcome>(),
  ): Promise<Map<string, LoadOutcome>> => {
    const requests = (await loader.parse(text, 'policies.yml')).map((entry): LoadRequest => {
      assert.ok('definition' in entry);
      return { id: entry.definition.id, definition: entry.definition, ...rest };
    });
    const { promise, resolve } = Promise.withResolvers<void>();
    loader.load(requests, (arrived) => {
      for (const [{ id }, outcome] of arrived) {
        assert.ok(!outcomes.has(id), `${id} has one outcome`);
        outcomes.set(id, outcome);
      }
      if (outcomes.size === requests.length) {
        resolve();
      }
    });
    await promise;
    return outcomes;
  };
  return {
    loader,
    load,
    connections: () => connections,
    folder: folder.path,
    [Symbol.asyncDispose]: async () => {
      await loader.stop();
      await folder.remove();
    },
  };
}

describe('the loader', () => {
  it('is replaced when a guest does not end, and loses nothing but that guest', async () => {
    await using at = await setUp();
    await at.load(accept);
    const outcomes = at.load(`${endless}${accept}`);
    // By then the thread is held: the guest has twice that time.
    await sleep((TIMEOUT_SECONDS * 1000) / 2);
    const [parsed] = await at.loader.parse(accept, 'policies.yml');
    assert.ok(parsed !== undefined && 'definition' in parsed);
    assert.equal(parsed.definition.id, 'accept');
    for (const [id, outcome] of await outcomes) {
      assert.equal(outcome.ok, id === 'accept', id);
      assert.ok(outcome.ok || outcome.reason === 'SettingsCheckFailed');
    }
    assert.equal((await at.load(accept)).get('accept')?.ok, true);
  });

  it('records what it loads until that has ended, was given up, or the loader stops', async () => {
    await using at = await setUp();
    const recorded = async (): Promise<string> => {
      const names = (await readdir(at.folder)).filter((name) => name.startsWith('loading-'));
      return (await Promise.all(names.map((name) => readFile(join(at.folder, name), 'utf8')))).join('');
    };
    await at.load(accept);
    assert.equal(await recorded(), '');
    const given = at.load(endless);
    while (!(await recorded()).includes('"endless"')) {
      await sleep(5);
    }
    await given;
    assert.equal(await recorded(), '');
    void at.load(endless);
    while (!(await recorded()).includes('"endless"')) {
      await sleep(5);
    }
    await at.loader.stop();
    assert.equal(await recorded(), '');
  });

  it('measures what an instance of a module holds', async () => {
    await using at = await setUp();
    const outcome = (await at.load(accept)).get('accept');
    assert.ok(outcome?.ok);
    const [bytes = 0] = outcome.modules.map(({ instanceBytes }) => instanceBytes);
    assert.ok(bytes > 65_536 && bytes < 500_000, `${bytes}`);
  });

  it('gives up a policy that it was put off for, when it does not end in its own time either', async () => {
    await using at = await setUp();
    // Longer than a busy machine takes to start a thread for the others.
    const outcomes = await at.load(`${endless}  timeoutEvalSeconds: 4\n${accept}`);
    // Told in the order in which they ended: the others do not wait.
    assert.deepEqual([...outcomes.keys()], ['accept', 'endless']);
    const outcome = outcomes.get('endless');
    assert.ok(outcome !== undefined && !outcome.ok);
    assert.equal(outcome.transient, false);
    assert.match(outcome.message, /did not end|fuel/);
  });

  it('when renewed has a new connection for host capabilities, and loses no load', async () => {
    await using at = await setUp();
    const outcomes = at.load(accept);
    at.loader.renew();
    assert.equal((await outcomes).get('accept')?.ok, true);
    assert.equal(at.connections(), 2);
    at.loader.renew();
    assert.equal((await at.load(accept)).get('accept')?.ok, true);
    assert.equal(at.connections(), 3);
  });

  it('takes pinned modules from where they are, and no others', async () => {
    await using at = await setUp();
    const reference = `file://${guests}/accept.wasm`;
    const one = async (rest: Partial<LoadRequest>, text = accept): Promise<LoadOutcome> =>
      (await at.load(text, rest)).get('accept') ?? assert.fail('no outcome');
    const digest = digestOf(await readFile(join(guests, 'accept.wasm')));
    const other = `sha256:${'0'.repeat(64)}`;
    const refused = async (rest: Partial<LoadRequest>, text?: string): Promise<LoadOutcome & { ok: false }> => {
      const outcome = await one(rest, text);
      assert.ok(!outcome.ok);
      return outcome;
    };

    const early = await refused({ digests: { [reference]: digest }, from: 'cache' });
    assert.deepEqual([early.reason, early.transient], ['FetchFailed', true], 'the cache is empty');
    const pinned = await one({ digests: { [reference]: digest } });
    assert.deepEqual(pinned.ok && pinned.digests, { [reference]: digest });
    assert.equal((await one({ digests: { [reference]: digest }, from: 'cache' })).ok, true);
    const malformed = await refused({ digests: { [reference]: 'sha256:0' } });
    assert.deepEqual([malformed.reason, malformed.transient], ['InvalidDefinition', false]);
    const moved = await refused({ digests: { [reference]: other } });
    assert.deepEqual([moved.reason, moved.transient], ['DigestMismatch', true]);
    assert.match(moved.message, /has another module than.*change the policy/);
    const contradiction = await refused(
      { digests: { [`${reference}@${other}`]: digest } },
      `accept:\n  module: ${reference}@${other}\n`,
    );
    assert.equal(contradiction.reason, 'DigestMismatch');
    assert.match(contradiction.message, /two different modules/);
  });

  it('loads modules that are provided, in the mode that is chosen, also those without a protocol version yet', async () => {
    await using at = await setUp();
    const [reference, text] = ['file:///elsewhere.wasm', 'draft:\n  module: file:///elsewhere.wasm\n'];
    const bytes = await readFile(join(guests, 'no-metadata.wasm'));
    const one = async (provided: ProvidedModule): Promise<LoadOutcome> =>
      (await at.load(text, { provided: { [reference]: provided } })).get('draft') ?? assert.fail('no outcome');
    const loaded = await one({ bytes, chosenMode: 'kubewarden-wapc' });
    assert.ok(loaded.ok);
    assert.equal(loaded.modules[0]?.mode, 'kubewarden-wapc');
    const refused = await one({ bytes, chosenMode: 'opa' });
    assert.ok(!refused.ok);
    assert.deepEqual(refused.at, { stage: 'compile', unit: reference });
  });

  it('lets namespaces take turns, so that the slow policies of one delay no other namespace for long', async () => {
    await using scene = await setUp();
    const reference = 'registry://example.com/policy:v1';
    const provided = async (name: string): Promise<Partial<LoadRequest>> => ({
      isForTenant: true,
      provided: { [reference]: { bytes: await readFile(join(guests, `${name}.wasm`)), chosenMode: 'wasi' } },
    });
    const policiesOf = (namespace: string, count: number): string =>
      Array.from(
        { length: count },
        (_, at) => `kw.ap.${namespace}.p${at}: {module: ${reference}, settings: {n: ${at}}}\n`,
      ).join('');
    const slow = new Map<string, LoadOutcome>();
    const slowEnded = scene.load(policiesOf('slow', 8), { ...(await provided('wasi-loop')), namespace: 'slow' }, slow);
    while (slow.size < 2) {
      await sleep(10);
    }
    // It is tried with parameters, which takes as long as it needs.
    const rest = { namespace: 'other', trial: { objects: [], namespaces: [] } };
    const other = await scene.load(policiesOf('other', 2), { ...(await provided('wasi-accept')), ...rest });
    assert.ok(slow.size < 8, 'it did not wait for all of them');
    assert.deepEqual(
      [...other.values()].map(({ ok }) => ok),
      [true, true],
    );
    assert.ok([...(await slowEnded).values()].every(({ ok }) => !ok));
  });

  it('reports the outcomes of many loads in several turns', async () => {
    await using at = await setUp();
    const count = 3 * MAX_OUTCOMES;
    const requests = (await at.loader.parse(many(count), 'policies.yml')).map((entry): LoadRequest => {
      assert.ok('definition' in entry);
      return { id: entry.definition.id, definition: entry.definition };
    });
    const { promise, resolve } = Promise.withResolvers<void>();
    let turn = 0;
    let left = count;
    const turns: number[] = [];
    const sizes: number[] = [];
    const next = (): void => {
      turn += 1;
      if (left > 0) {
        setImmediate(next);
      }
    };
    next();
    at.loader.load(requests, (outcomes) => {
      sizes.push(outcomes.size);
      turns.push(turn);
      left -= outcomes.size;
      if (left === 0) {
        resolve();
      }
    });
    await promise;
    assert.ok(Math.max(...sizes) <= MAX_OUTCOMES);
    assert.equal(new Set(turns).size, turns.length, 'no two reports in one turn');
  });

  it('reports in which stage a load failed', async () => {
    await using at = await setUp();
    const of = async (name: string): Promise<FailedStage | undefined> => {
      const outcome = (await at.load(`${name}:\n  module: file://${guests}/${name}.wasm\n`)).get(name);
      assert.ok(outcome !== undefined && !outcome.ok);
      return outcome.at;
    };
    assert.deepEqual(await of('loop-in-start'), { stage: 'start', unit: 'loop-in-start' });
    assert.deepEqual(await of('trap-in-settings'), { stage: 'check', unit: 'trap-in-settings' });
    assert.deepEqual(await of('wasi-loop'), { stage: 'check', unit: 'wasi-loop', isOverdue: true });
  });

  it('reads no files for people who do not run the server', async () => {
    await using at = await setUp();
    const outcome = (await at.load(accept, { isForTenant: true })).get('accept');
    assert.ok(outcome !== undefined && !outcome.ok);
    assert.deepEqual([outcome.reason, outcome.transient], ['InvalidDefinition', false]);
    assert.match(outcome.message, /namespaced policies cannot name files/);
  });

  it('refuses policies of tenants that need host capabilities which they do not have', async () => {
    await using at = await setUp();
    const bytes = writeMetadata(await readFile(join(guests, 'accept.wasm')), {
      protocolVersion: 'v1',
      rules: [],
      annotations: {},
      mutating: false,
      backgroundAudit: true,
      policyType: 'kubernetes',
      contextAwareResources: [],
      hostCapabilities: ['tracing/log', 'net/v1/dns_lookup_host', 'oci/*'],
    });
    const cel = (expression: string): string => JSON.stringify({ validations: [{ expression }] });
    const check = "path('/').check('get').allowed()";
    const text = [
      `module: {module: needy, hostCapabilities: ['net/*']}`,
      `granted: {module: needy, hostCapabilities: ['net/*', 'oci/*']}`,
      `group: {expression: 'm()', message: 'no', policies: {m: {module: needy}}}`,
      `asking: {module: 'builtin:cel', settings: ${cel(`authorizer.${check}`)}}`,
      `allowed: {module: 'builtin:cel', hostCapabilities: ['kubernetes/can_i'], settings: ${cel(`authorizer.${check}`)}}`,
      `text: {module: 'builtin:cel', settings: ${cel("'authorizer' == ''")}}`,
      `other: {module: 'builtin:cel', hostCapabilities: ['*'], settings: ${cel(`authorizer.serviceAccount('a', 'b').${check}`)}}`,
    ].join('\n');
    const of = async (rest: Partial<LoadRequest>): Promise<object> => {
      const outcomes = await at.load(text, { provided: { needy: { bytes } }, ...rest });
      return Object.fromEntries(
        [...outcomes].map(([id, one]) => [id, one.ok || [one.reason, one.transient, one.at?.unit, one.message]]),
      );
    };
    const line = (names: string): string =>
      `the policy needs host capabilities that its PolicyServer does not grant to policies of namespaces: add ${names} to spec.namespacedPoliciesCapabilities of the PolicyServer. That replaces its pods; portcullis start must be started again`;
    const reason = 'CapabilityNotGranted';
    const expected = {
      module: [reason, true, 'module', line('"oci/*"')],
      granted: true,
      group: [reason, true, 'group/m', line('"net/v1/dns_lookup_host", "oci/*"')],
      asking: [reason, true, 'asking', line('"kubernetes/can_i"')],
      allowed: true,
      text: true,
      other: [
        'InvalidSettings',
        false,
        'other',
        'validations[0].expression: policies of namespaces learn only what the user of the request may do: remove the call of serviceAccount',
      ],
    };
    assert.deepEqual(await of({ isForTenant: true }), expected);
    const all = Object.fromEntries(Object.keys(expected).map((id) => [id, true]));
    assert.deepEqual(await of({}), all);
  });

  it('warns of what the metadata of modules state and the policy does not grant', async () => {
    await using at = await setUp();
    const metadata = {
      protocolVersion: 'v1',
      rules: [],
      annotations: {},
      mutating: true,
      backgroundAudit: true,
      policyType: 'kubernetes',
      contextAwareResources: [{ apiVersion: 'v1', kind: 'Secret\u001b[2J' }],
      hostCapabilities: ['tracing/log', 'oci/*'],
    } as const;
    const wasm = await readFile(join(guests, 'accept.wasm'));
    const bytes = writeMetadata(wasm, metadata);
    const greedy = {
      ...metadata,
      contextAwareResources: Array.from({ length: 99 }, () => ({ apiVersion: 'v1', kind: 'x'.repeat(99) })),
    };
    const text = [
      `bare: {module: needy}`,
      `granted: {module: needy, allowedToMutate: true, hostCapabilities: ['oci/*'], contextAwareResources: [{apiVersion: v1, kind: "Secret\\e[2J"}]}`,
      `group: {expression: 'm()', message: 'no', policies: {m: {module: needy, hostCapabilities: ['*']}}}`,
      `greedy: {module: greedy, allowedToMutate: true, hostCapabilities: ['*']}`,
      `builtin: {module: 'builtin:cel', settings: ${JSON.stringify({ validations: [{ expression: 'true' }] })}}`,
    ].join('\n');
    const provided = { needy: { bytes }, greedy: { bytes: writeMetadata(wasm, greedy) } };
    const of = async (isForTenant: boolean): Promise<Record<string, readonly string[] | undefined>> => {
      const outcomes = await at.load(text, { provided, isForTenant });
      return Object.fromEntries([...outcomes].map(([id, one]) => [id, one.ok ? one.warnings : [one.message]]));
    };
    const { greedy: long, ...warnings } = await of(false);
    assert.deepEqual(warnings, {
      bare: [
        'the module changes objects: if its settings let it change objects, set mutating: true',
        String.raw`the module reads "v1/Secret\u001b[2J": add what it needs to contextAwareResources`,
        'the module uses host capabilities: add "oci/*" to hostCapabilities',
      ],
      granted: undefined,
      group: [
        'the module of member "m" changes objects: members of groups may not; if its settings let it change objects, make it a policy of its own',
        String.raw`the module of member "m" reads "v1/Secret\u001b[2J": add what it needs to contextAwareResources`,
      ],
      builtin: undefined,
    });
    assert.deepEqual(
      long?.map(({ length }) => length),
      [500],
    );
    const { group } = await of(true);
    assert.match(group?.[1] ?? '', /which policies of a namespace may not$/);
  });

  it('reads objects as it reads the entries of a file, each by itself', async () => {
    await using at = await setUp();
    const spec = { module: 'builtin:cel', settings: JSON.parse('{"__proto__": {"a": 1}}') as object };
    const read = await at.loader.read([
      { id: 'a', spec },
      { id: 'a', spec: { ...spec, policyMode: 'monitor' } },
      { id: 'b', spec: { ...spec, settings: 'text', colour: 'red' } },
      { id: 'c', spec: null },
      { id: '__proto__', spec },
    ]);
    assert.deepEqual(
      read.map((one) => ('definition' in one ? [one.definition.id, one.definition.mode] : one.problems)),
      [
        ['a', 'protect'],
        ['a', 'monitor'],
        [
          'colour: unknown key "colour" in a policy: expected one of module, settings, contextAwareResources, timeoutEvalSeconds, hostCapabilities, parameters, policyMode, message, failurePolicy, podTemplates, namespacedName, allowedToMutate',
          'settings: expected a mapping, got "text"',
        ],
        ['expected a mapping with "module" or "policies", got nothing'],
        ['__proto__', 'protect'],
      ],
    );
    const [first] = read;
    const [ofFile] = await at.loader.parse(JSON.stringify({ a: spec }), 'policies.yml');
    assert.deepEqual(first, ofFile);
  });

  it('keeps settings with keys like numbers as small as their text', async () => {
    await using at = await setUp();
    const text = `{"list":[${Array(40_000).fill('{"1000":1}').join()}]}`;
    const settings: unknown = JSON.parse(text);
    const before = process.memoryUsage().heapUsed;
    const [read] = await at.loader.read([{ id: 'a', spec: { module: 'builtin:cel', settings } }]);
    assert.ok(read !== undefined && 'definition' in read && read.definition.kind === 'policy');
    assert.equal(read.definition.settingsJson, text);
    // A copy of these objects takes 480 MB.
    assert.ok(process.memoryUsage().heapUsed - before < 100 * 2 ** 20);
  });

  it('refuses what cannot be written as JSON, and reads the next', async () => {
    await using at = await setUp();
    const settings: unknown = JSON.parse(`${'['.repeat(100_000)}${']'.repeat(100_000)}`);
    await assert.rejects(at.loader.read([{ id: 'a', spec: { settings } }]), RangeError);
    assert.equal((await at.loader.read([{ id: 'a', spec: { module: 'builtin:cel' } }])).length, 1);
    at.loader.renew();
    assert.equal((await at.load(accept)).get('accept')?.ok, true);
  });

  it('says where a problem of an entry of a file is', async () => {
    await using at = await setUp();
    assert.deepEqual(
      await at.loader.parse('a:\n  module: builtin:cel\n  settings: 1\n  message: 2\n', 'policies.yml'),
      [
        {
          id: 'a',
          problems: [
            'line 4, column 3: message: expected text, got 2: put it in quotes',
            'line 3, column 3: settings: expected a mapping, got 1',
          ],
        },
      ],
    );
  });

  it('reports where a file is not YAML', async () => {
    await using at = await setUp();
    await assert.rejects(at.loader.parse('a: [', 'policies.yml'), {
      code: 'policies-unreadable',
      message: /policies\.yml:\d+:\d+/,
    });
  });
});

/** A policy whose reviews call the exported function `review`, and its check of settings does not. */
const CALLS_IN_REVIEWS = `(module
  (import "wapc" "__guest_response" (func $respond (param i32 i32)))
  (memory (export "memory") 1)
  (data (i32.const 0) "{\\"accepted\\":true}{\\"valid\\":true}\\"v1\\"")
  (func (export "wapc_init"))
  (func $review (export "review") (call $respond (i32.const 0) (i32.const 17)))
  (func (export "__guest_call") (param $operation i32) (param i32) (result i32)
    ;; The operations differ in the length of their names.
    (if (i32.eq (local.get $operation) (i32.const 8))
      (then (call $review)))
    (if (i32.eq (local.get $operation) (i32.const 16))
      (then (call $respond (i32.const 31) (i32.const 4))))
    (if (i32.eq (local.get $operation) (i32.const 17))
      (then (call $respond (i32.const 17) (i32.const 14))))
    (i32.const 1)))`;

/** Whether V8 has not compiled a function of WebAssembly. */
function isUncompiled(code: unknown): boolean {
  setFlagsFromString('--allow-natives-syntax');
  const ask = runInThisContext('(code) => %IsUncompiledWasmFunction(code)') as (code: unknown) => boolean;
  return ask(code);
}

describe('a module that was loaded', () => {
  it('has the code of reviews compiled before its first review', async () => {
    await using test = await setUp();
    const bytes = binaryen.parseText(CALLS_IN_REVIEWS).emitBinary();
    const text = `calls:\n  module: calls\n`;
    const outcomes = await test.load(text, { provided: { calls: { bytes, chosenMode: 'kubewarden-wapc' } } });
    const outcome = outcomes.get('calls');
    assert.ok(outcome?.ok === true, JSON.stringify(outcome));
    const [module] = outcome.modules;
    assert.ok(module !== undefined && 'compiled' in module);
    const code = module.compiled.module;
    const imports: WebAssembly.Imports = {};
    for (const { module: from, name } of WebAssembly.Module.imports(code)) {
      imports[from] = { ...imports[from], [name]: () => 0 };
    }
    const { exports } = new WebAssembly.Instance(code, imports);
    assert.equal(isUncompiled(exports['review']), false);
  });
});
