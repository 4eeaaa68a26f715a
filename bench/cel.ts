// Times of CEL: single checks, the policy of a tenant (eleven expressions that share a variable), compiling, and hostile
// expressions until their cost limit. Compared with @bufbuild/cel, which has no limits, for expressions that it supports.
//   node bench/cel.ts [milliseconds per figure]
import { loadavg } from 'node:os';
import { celEnv, parse, plan } from '@bufbuild/cel';
import { CostCounter, createEnvironment, DYN, LazyStruct, parseCelJson, STRING } from '../src/cel/index.ts';
import type { CelRecord, CelValue, Program } from '../src/cel/index.ts';
import { review } from './review.ts';

const MILLISECONDS = Number(process.argv[2] ?? 500);

/** Cost limits of API servers for one expression and for a whole policy. */
const EXPRESSION_BUDGET = 1_000_000;
const POLICY_BUDGET = 10_000_000;

const environment = createEnvironment({
  variables: { object: DYN, params: DYN, variables: DYN, text: STRING },
});

const reviewText = JSON.stringify(review());
const object = withFiveContainers(member(member(parseCelJson(reviewText), 'request'), 'object'));
const params = {
  spec: { uid: 1000, hostPaths: [{ prefix: '/data/project' }, { prefix: '/data/scratch' }] },
};

/** The pod of the review with one more container, which makes five. */
function withFiveContainers(pod: CelValue): CelValue {
  const spec = member(pod, 'spec');
  const containers = member(spec, 'containers') as readonly CelValue[];
  const five = [...containers, structuredClone(containers[0] ?? null)];
  return { ...(pod as CelRecord), spec: { ...(spec as CelRecord), containers: five } };
}

function member(value: CelValue, name: string): CelValue {
  return (value as CelRecord)[name] ?? null;
}

/** Calls per second in the best of five runs: other load on the machine only lowers the result. */
function rate(call: () => void): number {
  let calls = 1;
  let best = 0;
  for (let run = -1; run < 5; run++) {
    const began = performance.now();
    let done = 0;
    while (performance.now() - began < MILLISECONDS / 5) {
      for (let index = 0; index < calls; index++) {
        call();
      }
      done += calls;
      calls = Math.min(calls * 2, 1000);
    }
    if (run >= 0) {
      best = Math.max(best, (done * 1000) / (performance.now() - began));
    }
  }
  return best;
}

/** The shortest time of one call. */
function best(call: () => void, calls = 20): number {
  let shortest = Infinity;
  for (let index = 0; index < calls; index++) {
    const began = performance.now();
    call();
    shortest = Math.min(shortest, performance.now() - began);
  }
  return shortest;
}

function print(cells: readonly (string | number)[]): void {
  console.log(
    `${String(cells[0]).padEnd(44)}${cells
      .slice(1)
      .map((cell) => String(cell).padStart(13))
      .join('')}`,
  );
}

const CHECKS: readonly (readonly [name: string, expression: string])[] = [
  [
    'privileged',
    'object.spec.containers.all(c, !has(c.securityContext) || !has(c.securityContext.privileged) || !c.securityContext.privileged)',
  ],
  [
    'privileged, as the issue has it',
    'object.spec.containers.all(c, !has(c.securityContext) || !c.securityContext.privileged)',
  ],
  ['image prefix', "object.spec.containers.all(c, c.image.startsWith('registry.'))"],
  ['names of containers', "object.spec.containers.filter(c, c.name != 'web').map(c, c.name).size() >= 0"],
  ['pattern', "object.metadata.name.matches('^[a-z0-9]([-a-z0-9]*[a-z0-9])?$')"],
  ['label', "has(object.metadata.labels.app) && object.metadata.labels.app == 'web'"],
  ['optional (not in @bufbuild/cel)', 'object.spec.containers.all(c, c.?securityContext.?runAsUser.orValue(1) > 0)'],
];

function theirs(expression: string, bindings: Record<string, unknown>): (() => unknown) | undefined {
  try {
    const evaluate = plan(celEnv(), parse(expression));
    evaluate(bindings as never);
    return () => evaluate(bindings as never);
  } catch {
    return undefined;
  }
}

function printChecks(): void {
  print(['per core', 'M/s', 'cost', '@bufbuild/cel', 'times']);
  const programs = CHECKS.map(([name, expression]): [string, string, Program] => [
    name,
    expression,
    environment.compile(expression),
  ]);
  // All are warmed up before the first is measured, because a server runs many expressions.
  for (const [, , program] of programs) {
    rate(() => program.run({ object }, { budget: EXPRESSION_BUDGET }));
  }
  for (const [name, expression, program] of programs) {
    const options = { budget: EXPRESSION_BUDGET };
    const bindings = { object };
    const ours = rate(() => program.run(bindings, options));
    const { cost } = program.run(bindings, options);
    const call = theirs(expression, { object });
    const others = call === undefined ? undefined : rate(call);
    print([
      name,
      (ours / 1e6).toFixed(2),
      cost,
      others === undefined ? '–' : (others / 1e6).toFixed(2),
      others === undefined ? '–' : (ours / others).toFixed(1),
    ]);
  }
}

/** The limits of a Toolforge tenant: one uid per tenant, no privileges, few host paths. */
const TENANT_VARIABLE =
  'object.spec.containers + object.spec.?initContainers.orValue([]) + object.spec.?ephemeralContainers.orValue([])';
const TENANT_CHECKS: readonly string[] = [
  'object.spec.?securityContext.?fsGroup.orValue(params.spec.uid) == params.spec.uid',
  'object.spec.?securityContext.?supplementalGroups.orValue([]).all(g, g >= 1 && g <= 65535)',
  '!object.spec.?hostNetwork.orValue(false) && !object.spec.?hostPID.orValue(false) && !object.spec.?hostIPC.orValue(false)',
  'variables.cs.all(c, c.?securityContext.?runAsUser.orValue(object.spec.?securityContext.?runAsUser.orValue(params.spec.uid)) == params.spec.uid)',
  'variables.cs.all(c, c.?securityContext.?runAsGroup.orValue(object.spec.?securityContext.?runAsGroup.orValue(params.spec.uid)) == params.spec.uid)',
  'variables.cs.all(c, !c.?securityContext.?privileged.orValue(false))',
  'variables.cs.all(c, !c.?securityContext.?allowPrivilegeEscalation.orValue(false))',
  'variables.cs.all(c, c.?securityContext.?capabilities.?add.orValue([]).size() == 0)',
  "variables.cs.all(c, c.?securityContext.?seccompProfile.?type.orValue('RuntimeDefault') == 'RuntimeDefault')",
  'variables.cs.all(c, c.?ports.orValue([]).all(p, p.?hostPort.orValue(0) == 0))',
  "object.spec.?volumes.orValue([]).all(v, !has(v.hostPath) || params.spec.hostPaths.exists(p, v.hostPath.path == p.prefix || v.hostPath.path.startsWith(p.prefix + '/')))",
];

function printTenant(): void {
  const variable = environment.compile(TENANT_VARIABLE);
  const programs = TENANT_CHECKS.map((expression) => environment.compile(expression));
  let cost = 0;
  const evaluate = (): void => {
    const counter = new CostCounter(POLICY_BUDGET);
    const options = { budget: EXPRESSION_BUDGET, counter };
    const variables = new LazyStruct('kubernetes.variables');
    const bindings = { object, params, variables };
    variables.define('cs', () => variable.run(bindings, options).value as CelValue);
    for (const program of programs) {
      if (program.run(bindings, options).value !== true) {
        throw new Error(`the review is not as expected: ${program.text}`);
      }
    }
    cost = counter.spent;
  };
  print([`\ntenant's policy, ${programs.length} expressions`, 'µs', 'cost']);
  print(['evaluate', (1e6 / rate(evaluate)).toFixed(2), cost]);
  print([`parse the review, ${reviewText.length} bytes`, (1e6 / rate(() => void parseCelJson(reviewText))).toFixed(2)]);
  print(['  with JSON.parse', (1e6 / rate(() => void JSON.parse(reviewText))).toFixed(2)]);
}

function printCompiling(): void {
  print(['\ncompiling', 'µs', '@bufbuild/cel']);
  for (const [name, expression] of CHECKS) {
    const ours = 1e6 / rate(() => void environment.compile(expression));
    const others = theirs(expression, { object });
    const time = others === undefined ? '–' : (1e6 / rate(() => void plan(celEnv(), parse(expression)))).toFixed(0);
    print([name, ours.toFixed(0), time]);
  }
}

/** Nested lists, with ten times as many elements for each level. */
function nestedLists(levels: number): string {
  let expression = '1';
  for (let level = 0; level < levels; level++) {
    expression = `[0, 1, 2, 3, 4, 5, 6, 7, 8, 9].map(v${level}, ${expression})`;
  }
  return expression;
}

function hundredTimes(condition: string): string {
  const digits = '[0, 1, 2, 3, 4, 5, 6, 7, 8, 9]';
  return `${digits}.all(a, ${digits}.all(b, ${condition}))`;
}

/** A string that doubles with each level. Its type is dynamic, so that the static cost of a concatenation is 1. */
function doublingText(levels: number): string {
  let expression = "dyn('0123456789abcdef')";
  for (let level = 0; level < levels; level++) {
    expression = `[${expression}].map(v${level}, v${level} + v${level})[0]`;
  }
  return `size(${expression})`;
}

function printHostile(): void {
  print(['\nhostile expressions', 'ms', 'cost']);
  const expressions: readonly (readonly [string, string])[] = [
    ['^(a+)+$ on 30 characters', "text.matches('^(a+)+$')"],
    ['the same, a hundred times', hundredTimes("!text.matches('^(a+)+$')")],
    ['lists in lists, 10^8 elements', nestedLists(8)],
    ['a string that doubles 24 times', doublingText(24)],
    ['the pod compared, ten thousand times', hundredTimes(hundredTimes('object == object'))],
    ['the pod compared, 10^8 times', hundredTimes(hundredTimes(hundredTimes(hundredTimes('object == object'))))],
  ];
  for (const [name, expression] of expressions) {
    const program = environment.compile(expression);
    const bindings = { object, text: `${'a'.repeat(29)}!` };
    let ended = '';
    const time = best(() => {
      const { value, cost } = program.run(bindings, { budget: EXPRESSION_BUDGET });
      ended = value !== null && typeof value === 'object' && 'code' in value ? 'exceeded' : String(cost);
    });
    print([name, time.toFixed(2), ended]);
  }
}

console.log(`Node ${process.version}, load average ${loadavg()[0]?.toFixed(1)}, cost budget on`);
printChecks();
printTenant();
printCompiling();
printHostile();
