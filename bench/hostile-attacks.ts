// What a hostile tenant does, class by class. Each ends by itself with its signal.
import { connect, type Socket } from 'node:net';
import { request } from 'node:https';
import type { ClientRequest } from 'node:http';
import { setTimeout as sleep } from 'node:timers/promises';
import type { Connection } from '../src/cluster/index.ts';
import { connectionAs } from '../src/cluster/index.ts';
import {
  endlessReviewModule,
  endlessSettingsModule,
  endlessStartModule,
  fillingModule,
  justAllowedModule,
  longestAllowedModule,
  longModule,
  memoryModule,
  slowStartModule,
  smallerMemoryModule,
  wideModule,
} from './hostile-modules.ts';
import type { PolicySpec, Tenant } from './hostile-tenant.ts';
import { inTurns } from './scene.ts';

export interface Attacked {
  readonly tenant: Tenant;
  readonly user: string;
  readonly connection: Connection;
  readonly admissionPort: number;
  readonly signal: AbortSignal;
}

export interface Attack {
  /** Of issue and argument, such as `memory`. */
  readonly name: string;
  readonly what: string;
  readonly run: (attacked: Attacked) => Promise<void>;
}

/** Modules of a kind, and policies that are applied again and again. */
const MODULES = 6;
const AT_ONCE = 8;
/** Requests of the tenant itself while its modules are there. */
const OWN_REQUESTS = 4;
const LOOPING_REQUESTS = 20;
/** More than the gateway answers at once. */
const HANGING_REQUESTS = 400;
const SILENT_CONNECTIONS = 6_000;
/** New connections for each turn of the event loop. */
const CONNECTIONS_AT_ONCE = 200;
const POLICIES = 1_000;
const WATCHES = 300;
/** Of the changes that nobody reads. */
const CHANGE_CHARACTERS = 200_000;
const CHANGE_MS = 50;

const numbers = (count: number): readonly number[] => Array.from({ length: count }, (_, index) => index);

/** Calls something again and again, several at once, until the signal. */
async function repeat(signal: AbortSignal, atOnce: number, act: (turn: number) => Promise<void>): Promise<void> {
  let turn = 0;
  await Promise.all(
    numbers(atOnce).map(async () => {
      while (!signal.aborted) {
        turn += 1;
        await act(turn);
        // A refusal that takes no time must not occupy this process.
        await sleep(1);
      }
    }),
  );
}

/** Applies a policy for each module, and has them evaluated. */
async function applyModules(
  { tenant, signal }: Attacked,
  name: string,
  modules: readonly (readonly [string, Uint8Array])[],
): Promise<void> {
  await inTurns(modules, AT_ONCE, ([file, bytes]) =>
    tenant.apply(`${name}-${file}`, { module: tenant.offer(file, bytes) }),
  );
  await repeat(signal, OWN_REQUESTS, () => tenant.ask());
}

const several = (name: string, module: (salt: number) => Uint8Array): readonly (readonly [string, Uint8Array])[] =>
  numbers(MODULES).map((salt) => [`${name}-${salt}`, module(salt)] as const);

/** Applies a policy under ever new names, several at once, until the signal. */
const applyAgain =
  (spec: PolicySpec) =>
  ({ tenant, signal }: Attacked): Promise<void> =>
    repeat(signal, AT_ONCE, (turn) => tenant.apply(`again-${turn}`, spec));

const validations = (...expressions: readonly string[]): PolicySpec => ({
  settings: { validations: expressions.map((expression) => ({ expression })) },
});

/** A pattern of this many characters, distinct. */
const pattern = (length: number, salt: number): string => `(a|b${salt}|[c-x]+y*){1,3}`.repeat(Math.ceil(length / 24));

const matches = (length: number, salt: number): string => `object.metadata.name.matches('${pattern(length, salt)}')`;

/** A text, and one that is nearly a part of it at each position. Together below the limit of a config map. */
const NEARLY = { text: 'a'.repeat(500_000), part: `${'a'.repeat(100_000)}b${'a'.repeat(100_000)}` };

/** Has each expression on `object.data.text` evaluated, again and again. */
const askExpressions =
  (name: string, data: Readonly<Record<string, string>>, calls: readonly string[]) =>
  async ({ tenant, signal }: Attacked): Promise<void> => {
    await inTurns([...calls.entries()], AT_ONCE, ([index, call]) =>
      tenant.apply(`${name}-${index}`, validations(`object.data.text.${call}`)),
    );
    await repeat(signal, OWN_REQUESTS, () => tenant.ask({ text: 'a', ...data }));
  };

/** Calls of `all` in each other. */
const nested = (depth: number): string =>
  numbers(depth).reduceRight((inner, level) => `[1].all(v${level}, ${inner})`, 'true');

/** Work of almost as much as an expression may cost: lists in lists. */
const HEAVY_SETTINGS =
  "{'greeting': string([1,2,3,4,5,6,7,8,9].map(a, [1,2,3,4,5,6,7,8,9].map(b, [1,2,3,4,5,6,7,8,9].map(c, [1,2,3,4,5,6,7,8,9].map(d, [1,2,3,4,5,6,7,8,9].filter(e, e > a).size())))).size()) + params.data.value}";

/** Parameters that change ever and ever, with settings that take without end to validate. */
async function changeParameters({ tenant, signal }: Attacked): Promise<void> {
  await tenant.write('profile', { value: 'short' });
  const parameters = (settingsExpression: string): object => ({
    from: { resource: { apiVersion: 'v1', kind: 'ConfigMap', name: 'profile' } },
    overridable: ['greeting'],
    settingsExpression,
  });
  const module = tenant.offer('settings', endlessSettingsModule(0));
  for (const index of numbers(MODULES)) {
    const expression = index % 2 === 0 ? "{'greeting': params.data.value}" : HEAVY_SETTINGS;
    await tenant.apply(`parameters-${index}`, {
      module,
      settings: { greeting: 'a' },
      parameters: parameters(expression),
    });
  }
  await Promise.all([
    repeat(signal, 1, async (turn) => {
      await tenant.write('profile', { value: `${turn} `.padEnd(200, 'x') });
      await sleep(CHANGE_MS);
    }),
    repeat(signal, OWN_REQUESTS, () => tenant.ask()),
  ]);
}

/** Opens connections that say nothing, as many as stay open. */
async function connectSilently({ admissionPort, signal }: Attacked): Promise<void> {
  const sockets = new Set<Socket>();
  while (!signal.aborted) {
    for (let count = 0; count < CONNECTIONS_AT_ONCE && sockets.size < SILENT_CONNECTIONS; count += 1) {
      const socket = connect(admissionPort, '127.0.0.1');
      sockets.add(socket);
      socket.on('error', () => undefined).once('close', () => sockets.delete(socket));
    }
    await sleep(20);
  }
  for (const socket of sockets) {
    socket.destroy();
  }
}

/** Opens watches that read nothing, and writes what they would get. */
async function watchWithoutReading({ tenant, user, connection, signal }: Attacked): Promise<void> {
  const { server, ca = '', credentials } = connectionAs(connection, { user });
  const { authorization = '' } = (await credentials?.current()) ?? {};
  const url = `${server}/api/v1/namespaces/${tenant.namespace}/configmaps?watch=true`;
  const watches: ClientRequest[] = numbers(WATCHES).map(() =>
    request(url, { agent: false, ca, headers: { authorization, 'impersonate-user': user } }, (response) => {
      response.pause();
    })
      .on('error', () => undefined)
      .end(),
  );
  await repeat(signal, OWN_REQUESTS, async (turn) => {
    await tenant.write(`large-${turn % OWN_REQUESTS}`, { value: `${turn} `.padEnd(CHANGE_CHARACTERS, 'x') });
    await sleep(CHANGE_MS);
  });
  for (const watch of watches) {
    watch.destroy();
  }
}

async function applyMany({ tenant, signal }: Attacked): Promise<void> {
  const spec = validations("object.metadata.name != 'forbidden'");
  await inTurns(numbers(POLICIES), AT_ONCE * 2, async (index) => {
    if (!signal.aborted) {
      await tenant.apply(`many-${index}`, spec);
    }
  });
  await repeat(signal, OWN_REQUESTS, () => tenant.ask());
}

export const ATTACKS: readonly Attack[] = [
  { name: 'nothing', what: 'nothing', run: ({ signal }) => repeat(signal, 1, () => sleep(100)) },
  {
    name: 'memory',
    what: `${MODULES} modules whose start fills 125 MiB`,
    run: (attacked) => applyModules(attacked, 'memory', several('memory', memoryModule)),
  },
  {
    name: 'memory-small',
    what: `${MODULES} modules whose start fills 12 MiB`,
    run: (attacked) =>
      applyModules(
        attacked,
        'small',
        several('small', (salt) => smallerMemoryModule(200, salt)),
      ),
  },
  {
    name: 'memory-reviews',
    what: `${MODULES} modules that fill 125 MiB in each review`,
    run: (attacked) => applyModules(attacked, 'filling', several('filling', fillingModule)),
  },
  {
    name: 'compile',
    what: '49,000 locals in 800 ifs (4 KB); a function of 13 MB',
    run: (attacked) =>
      applyModules(attacked, 'compile', [
        ['wide', wideModule()],
        ['long', longModule()],
      ]),
  },
  {
    name: 'compile-allowed',
    what: `${MODULES * 2} modules just within the bounds of a function`,
    run: (attacked) =>
      applyModules(attacked, 'allowed', [
        ...several('wide', justAllowedModule),
        ...several('long', longestAllowedModule),
      ]),
  },
  {
    name: 'starts',
    what: `${MODULES} modules with a long start, one with an endless one`,
    run: (attacked) =>
      applyModules(attacked, 'start', [...several('slow', slowStartModule), ['endless', endlessStartModule(0)]]),
  },
  {
    name: 'patterns',
    what: '165 KB of regular expressions as literals, again and again',
    run: applyAgain(validations(...numbers(10).map((salt) => matches(16_500, salt)))),
  },
  {
    name: 'small-patterns',
    what: 'ten patterns of 1 KB, again and again',
    run: applyAgain(validations(...numbers(10).map((salt) => matches(1_000, salt)))),
  },
  {
    name: 'nesting',
    what: '3,000 nested all(), again and again',
    run: applyAgain(validations(nested(3_000))),
  },
  {
    name: 'search',
    what: `${OWN_REQUESTS} requests at once to searches of a text that nearly matches`,
    run: askExpressions('search', NEARLY, [
      'contains(object.data.part)',
      'indexOf(object.data.part) >= 0',
      'lastIndexOf(object.data.part) >= 0',
      'split(object.data.part).size() > 1',
      "replace(object.data.part, 'x') != ''",
    ]),
  },
  {
    name: 'dates',
    what: `${OWN_REQUESTS} requests at once to loops of dates in time zones`,
    run: askExpressions('dates', {}, [
      'size() >= 0 && lists.range(20000).all(day, timestamp(day * 86400).getHours("Europe/Berlin") >= 0)',
      'size() >= 0 && lists.range(20000).all(day, string(timestamp(day * 86400)) != "")',
    ]),
  },
  {
    name: 'results',
    what: `${OWN_REQUESTS} requests at once to loops of functions with long results`,
    run: askExpressions('results', NEARLY, [
      "split('').size() >= 0 && lists.range(10000).all(i, object.data.text.split('').size() > 0)",
      'size() >= 0 && lists.range(1000).all(i, [lists.range(10000), lists.range(10000)].flatten().size() > 0)',
      "size() >= 0 && lists.range(10000).all(i, object.data.text.replace('a', 'bb') != '')",
    ]),
  },
  {
    name: 'loop',
    what: `${LOOPING_REQUESTS} requests at once to an endless policy`,
    run: async ({ tenant, signal }) => {
      await tenant.apply('loop', { module: tenant.offer('loop', endlessReviewModule(0)) });
      await repeat(signal, LOOPING_REQUESTS, () => tenant.ask());
    },
  },
  {
    name: 'requests',
    what: `${HANGING_REQUESTS} requests at once to an endless policy`,
    run: async ({ tenant, signal }) => {
      await tenant.apply('loop', { module: tenant.offer('loop', endlessReviewModule(0)) });
      await repeat(signal, HANGING_REQUESTS, () => tenant.ask());
    },
  },
  { name: 'connections', what: `${SILENT_CONNECTIONS} silent connections`, run: connectSilently },
  {
    name: 'parameters',
    what: `${MODULES} policies with ever new parameters, endless to validate`,
    run: changeParameters,
  },
  { name: 'policies', what: `${POLICIES} policies`, run: applyMany },
  { name: 'watches', what: `${WATCHES} watches that read nothing`, run: watchWithoutReading },
];
