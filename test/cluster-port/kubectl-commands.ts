// The transcript: commands in order. Each is run on both clusters.
import type { Command } from './kubectl-target.ts';

/** A command, and the intended difference of its output, if any: a key of `DIFFERENCES`. */
export interface Step extends Command {
  readonly difference?: string;
  /** Retried for some seconds until it succeeds: an API server publishes new kinds a moment after it serves them. */
  readonly isRepeated?: boolean;
}

const NAMESPACE = ['-n', 'shop'];

function step(line: string, more: Omit<Step, 'args'> = {}): Step {
  return { args: line.split(' '), ...more };
}

/** A command in the namespace of the transcript. */
function shop(line: string, more: Omit<Step, 'args'> = {}): Step {
  return { args: [...line.split(' '), ...NAMESPACE], ...more };
}

/** A command whose arguments contain spaces. */
function shopArgs(args: readonly string[], more: Omit<Step, 'args'> = {}): Step {
  return { args: [...args, ...NAMESPACE], ...more };
}

const applied = (object: object | string, ...flags: string[]): Step =>
  shopArgs(['apply', '-f', '-', ...flags], { stdin: typeof object === 'string' ? object : JSON.stringify(object) });

function deployment(change: { readonly image?: string; readonly app?: string; readonly extra?: object } = {}): object {
  const { image = 'registry.example/web:1', app = 'web', extra = {} } = change;
  return {
    apiVersion: 'apps/v1',
    kind: 'Deployment',
    metadata: { name: 'web', labels: { app: 'web' } },
    spec: {
      replicas: 2,
      selector: { matchLabels: { app: 'web' } },
      template: {
        metadata: { labels: { app } },
        spec: {
          containers: [
            {
              name: 'web',
              image,
              ports: [{ containerPort: 8080 }],
              resources: { requests: { cpu: '100m', memory: '64Mi' } },
            },
          ],
        },
      },
      ...extra,
    },
  };
}

const pod = (name: string, extra: object = {}): object => ({
  apiVersion: 'v1',
  kind: 'Pod',
  metadata: { name, labels: { app: name } },
  spec: { containers: [{ name: 'main', image: 'registry.example/main:1', ...extra }] },
});

const configMap = (name: string, data: object, extra: object = {}): object => ({
  apiVersion: 'v1',
  kind: 'ConfigMap',
  metadata: { name, ...extra },
  data,
});

const label = { labels: { set: 'many' } };

const node: object = {
  apiVersion: 'v1',
  kind: 'Node',
  metadata: { name: 'worker', labels: { 'kubernetes.io/os': 'linux', 'node-role.kubernetes.io/worker': '' } },
};

const widgets: object = {
  apiVersion: 'apiextensions.k8s.io/v1',
  kind: 'CustomResourceDefinition',
  metadata: { name: 'widgets.shop.example' },
  spec: {
    group: 'shop.example',
    scope: 'Namespaced',
    names: { plural: 'widgets', singular: 'widget', kind: 'Widget', shortNames: ['wd'], categories: ['all'] },
    versions: [
      {
        name: 'v1',
        served: true,
        storage: true,
        subresources: {
          status: {},
          scale: { specReplicasPath: '.spec.replicas', statusReplicasPath: '.status.replicas' },
        },
        additionalPrinterColumns: [
          { name: 'Size', type: 'string', jsonPath: '.spec.size' },
          { name: 'Ready', type: 'string', jsonPath: '.status.conditions[?(@.type=="Ready")].status' },
          { name: 'Replicas', type: 'integer', jsonPath: '.spec.replicas', priority: 1 },
          { name: 'Age', type: 'date', jsonPath: '.metadata.creationTimestamp' },
        ],
        schema: {
          openAPIV3Schema: {
            type: 'object',
            description: 'A widget of the shop.',
            required: ['spec'],
            properties: {
              spec: {
                type: 'object',
                description: 'What is wanted.',
                required: ['size'],
                'x-kubernetes-validations': [
                  { rule: "self.size != 'large' || self.replicas > 1", message: 'large widgets need replicas' },
                ],
                properties: {
                  size: { type: 'string', enum: ['small', 'large'], description: 'How large it is.' },
                  replicas: { type: 'integer', minimum: 0, default: 1 },
                  parts: {
                    type: 'array',
                    'x-kubernetes-list-type': 'map',
                    'x-kubernetes-list-map-keys': ['name'],
                    items: {
                      type: 'object',
                      required: ['name'],
                      properties: { name: { type: 'string' }, count: { type: 'integer' } },
                    },
                  },
                },
              },
              status: {
                type: 'object',
                properties: {
                  replicas: { type: 'integer' },
                  conditions: {
                    type: 'array',
                    items: {
                      type: 'object',
                      required: ['type', 'status'],
                      properties: { type: { type: 'string' }, status: { type: 'string' } },
                    },
                  },
                },
              },
            },
          },
        },
      },
    ],
  },
};

const widget = (name: string, spec: object): object => ({
  apiVersion: 'shop.example/v1',
  kind: 'Widget',
  metadata: { name },
  spec,
});

export const STEPS: readonly Step[] = [
  // The cluster itself.
  step('version', { difference: 'version' }),
  step('cluster-info'),
  step('api-versions', { difference: 'groups' }),
  step('api-resources --api-group=batch -o wide'),
  step('api-resources --api-group=rbac.authorization.k8s.io -o wide'),
  step('api-resources --api-group=policy --no-headers'),
  step('get --raw /healthz'),
  step('get --raw /nothing/here'),

  // Namespaces.
  step('create namespace shop'),
  step('get namespace shop'),
  step('describe namespace shop'),
  step('create namespace shop'),
  step('create namespace Shop_1'),

  // Configuration.
  shop('create configmap settings --from-literal=colour=blue --from-literal=size=3'),
  shop('get configmap settings -o yaml'),
  shop('get configmap settings -o json'),
  shop('get configmap -o name'),
  shop('get configmap settings -o jsonpath={.data.colour}'),
  shop('get configmap settings -o custom-columns=NAME:.metadata.name,COLOUR:.data.colour'),
  shopArgs(['get', 'configmap', 'settings', '-o', 'go-template={{.data.size}}']),
  // One key, because kubectl prints several in random order.
  shop('create configmap motto --from-literal=text=hello'),
  shop('describe configmap motto'),
  shop('delete configmap motto'),
  shop('create configmap settings --from-literal=colour=red'),
  shop('create configmap Not_A_Name --from-literal=a=b'),
  shop('get configmap missing'),
  shop('get nonsense'),
  step('get configmaps -n nowhere'),
  step('create configmap lost --from-literal=a=b -n nowhere'),
  step('get --raw /api/v1/namespaces/shop/configmaps/missing'),
  step('get --raw /api/v1/namespaces/shop/configmaps/settings', { difference: 'field-order' }),
  shop('create secret generic password --from-literal=value=hunter2'),
  shop('get secrets'),
  shop('describe secret password'),
  shop('get secret password -o jsonpath={.data}'),

  // Labels, annotations, patches.
  shop('label configmap settings tier=back'),
  shop('label configmap settings tier=front'),
  shop('label configmap settings tier=front --overwrite'),
  shop('label configmap settings bad/label/key=x'),
  shop('annotate configmap settings owner=team-a'),
  shop('get configmap settings --show-labels'),
  shop('get configmaps -l tier=front'),
  shop('get configmaps -l tier=back'),
  shopArgs(['get', 'configmaps', '-l', 'tier in (front, back),!missing']),
  shopArgs(['get', 'configmaps', '-l', 'tier==x y']),
  shop('get configmaps --field-selector metadata.name=settings'),
  shop('get configmaps --field-selector data.colour=blue'),
  shopArgs(['patch', 'configmap', 'settings', '--type=merge', '-p', '{"data":{"colour":"green","size":null}}']),
  shopArgs(['patch', 'configmap', 'settings', '--type=merge', '-p', '{"data":{"colour":"green"}}']),
  shopArgs(['patch', 'configmap', 'settings', '--type=json', '-p', '[{"op":"add","path":"/data/size","value":"4"}]']),
  shopArgs(['patch', 'configmap', 'settings', '--type=json', '-p', '[{"op":"test","path":"/data/size","value":"9"}]']),
  shopArgs(['patch', 'configmap', 'settings', '--type=json', '-p', '[{"op":"remove","path":"/data/none"}]']),
  shopArgs(['patch', 'configmap', 'settings', '-p', '{"data":{"shape":"round"}}']),
  shopArgs(['patch', 'configmap', 'settings', '-p', '{"data":["round"]}'], { difference: 'patch-types' }),
  shopArgs(['patch', 'configmap', 'missing', '-p', '{"data":{"shape":"round"}}']),
  shopArgs(['patch', 'configmap', 'settings', '--type=merge', '-p', '{"metadata":{"resourceVersion":"1"}}']),
  shop('label configmap settings tier-'),
  shop('edit configmap settings', { editor: 'sed -i s/round/square/' }),
  shop('edit configmap settings', { editor: 'true' }),
  shop('get configmap settings -o yaml'),

  // Client-side apply.
  applied(deployment()),
  applied(deployment()),
  shop('get deployments'),
  shop('get deployment web -o wide'),
  shop('get deployment web -o yaml'),
  shop('describe deployment web'),
  shopArgs(['diff', '-f', '-'], { stdin: JSON.stringify(deployment({ image: 'registry.example/web:2' })) }),
  applied(deployment({ image: 'registry.example/web:2' })),
  shopArgs(['diff', '-f', '-'], { stdin: JSON.stringify(deployment({ image: 'registry.example/web:2' })) }),
  shop('scale deployment web --replicas=3'),
  shop('scale deployment web --replicas=5 --current-replicas=1'),
  shop('get deployment web --subresource=scale'),
  shop('set image deployment/web web=registry.example/web:3'),
  shop('set env deployment/web MODE=fast'),
  shop('set resources deployment web --limits=cpu=200m'),
  shop('get deployment web -o jsonpath={.spec.template.spec.containers[0]}'),
  applied(deployment({ app: 'other' })),
  applied(deployment({ extra: { selector: { matchLabels: { app: 'new' } } } })),
  { ...applied(deployment({ extra: { replicas: 'many' } })), difference: 'patch-types' },
  { ...applied(deployment({ extra: { replica: 2 } })), difference: 'patch-shown' },
  applied(deployment({ extra: { replica: 2 } }), '--validate=warn'),
  applied(deployment({ extra: { replicas: -1 } })),
  applied(pod('no-image', { image: '' })),
  applied({ apiVersion: 'v1', kind: 'Nothing', metadata: { name: 'x' } }),
  applied('a: b: c'),
  applied(configMap('dry', { a: 'b' }), '--dry-run=server'),
  applied(configMap('dry', { a: 'b' }), '--dry-run=client'),
  shop('get configmap dry'),

  // Server-side apply.
  applied(configMap('shared', { a: '1', b: '2' }), '--server-side', '--field-manager=first'),
  applied(configMap('shared', { a: '2' }), '--server-side', '--field-manager=second'),
  applied(configMap('shared', { a: '2' }), '--server-side', '--field-manager=second', '--force-conflicts'),
  applied(configMap('shared', { b: '2' }), '--server-side', '--field-manager=first'),
  shop('get configmap shared -o yaml --show-managed-fields'),
  applied(deployment({ image: 'registry.example/web:4' }), '--server-side'),
  applied(deployment({ image: 'registry.example/web:4' }), '--server-side', '--force-conflicts'),
  applied(deployment({ extra: { replica: 2 } }), '--server-side'),
  shopArgs(['diff', '--server-side', '--force-conflicts', '-f', '-'], {
    stdin: JSON.stringify(deployment({ image: 'registry.example/web:5' })),
  }),

  // Pods, services and others.
  applied(pod('single')),
  shop('get pods'),
  shop('get pods -o wide'),
  shop('get pods --field-selector status.phase=Pending'),
  shop('get pods --field-selector status.phase=Running'),
  shop('describe pod single'),
  shop('logs missing'),
  shop('run job-like --image=registry.example/tool:1 --restart=Never'),
  shop('expose deployment web --port=80 --target-port=8080'),
  shop('get service web'),
  shop('describe service web'),
  shop('create job report --image=registry.example/report:1'),
  shop('get jobs'),
  shopArgs(['create', 'cronjob', 'nightly', '--image=registry.example/report:1', '--schedule=0 3 * * *']),
  shop('get cronjobs'),
  shop('create quota limits --hard=pods=10'),
  shop('get quota limits -o jsonpath={.spec}'),
  shop('create ingress web --rule=shop.example/*=web:80'),
  shop('get ingress'),
  shop('create poddisruptionbudget web --selector=app=web --min-available=1'),
  shop('get pdb'),
  step('create priorityclass urgent --value=1000 --description=first'),
  step('get priorityclass urgent'),
  shop('autoscale deployment web --min=1 --max=3 --cpu-percent=80 --dry-run=server', { difference: 'autoscaling' }),
  applied({
    apiVersion: 'autoscaling/v2',
    kind: 'HorizontalPodAutoscaler',
    metadata: { name: 'web' },
    spec: {
      scaleTargetRef: { apiVersion: 'apps/v1', kind: 'Deployment', name: 'web' },
      maxReplicas: 3,
      metrics: [
        { type: 'Resource', resource: { name: 'cpu', target: { type: 'Utilization', averageUtilization: 80 } } },
      ],
    },
  }),
  shop('get hpa'),
  shop('get all'),
  shop('get configmaps,secrets -o name'),
  shop('get configmaps --sort-by=.metadata.name --no-headers --chunk-size=1'),
  shop('get events'),

  // Access.
  shop('create serviceaccount robot'),
  shop('get serviceaccount robot -o yaml'),
  shop('create token robot'),
  shop('create token robot --duration=1s'),
  shop('create token missing'),
  shop('create role reader --verb=get,list --resource=configmaps,pods'),
  shop('create rolebinding alice-reads --role=reader --user=alice'),
  shop('describe role reader'),
  shop('describe rolebinding alice-reads'),
  step('create clusterrole node-reader --verb=get --resource=nodes'),
  step('get clusterrole node-reader -o yaml'),
  shop('get configmaps', { user: 'alice' }),
  shop('get secrets', { user: 'alice' }),
  shop('get secret password', { user: 'alice' }),
  shop('delete configmap settings', { user: 'alice' }),
  shop('create configmap mine --from-literal=a=b', { user: 'alice' }),
  step('get nodes', { user: 'alice' }),
  step('get namespace shop', { user: 'alice' }),
  shop('auth can-i get configmaps', { user: 'alice' }),
  shop('auth can-i delete configmaps', { user: 'alice' }),
  shop('auth can-i --list', { user: 'alice' }),
  step('auth whoami', { user: 'alice' }),
  step('auth whoami', {}),
  step('auth whoami --as=bob --as-group=team'),
  step('get nodes --as=bob'),
  step('get nodes --as=bob', { user: 'alice' }),
  shop('create rolebinding alice-rules --clusterrole=admin --user=alice', { user: 'alice' }),

  // Custom resources.
  step('apply -f -', { stdin: JSON.stringify(widgets) }),
  step('wait --for=condition=Established crd/widgets.shop.example --timeout=10s'),
  step('get crd widgets.shop.example'),
  step('api-resources --api-group=shop.example -o wide'),
  step('explain widget', { isRepeated: true }),
  step('explain widget.spec'),
  step('explain widget.spec.parts --recursive'),
  step('explain widget.nothing'),
  applied(widget('small', { size: 'small' })),
  applied(widget('small', { size: 'small' })),
  shop('get widgets'),
  shop('get wd -o wide'),
  shop('get widget small -o yaml'),
  shop('describe widget small'),
  applied(widget('bad', { size: 'medium' })),
  applied(widget('bad', {})),
  applied(widget('bad', { size: 'large' })),
  applied(widget('bad', { size: 'small', colour: 'red' })),
  applied(widget('bad', { size: 'small', replicas: 'two' })),
  applied(widget('parts', { size: 'small', parts: [{ name: 'a', count: 1 }] }), '--server-side'),
  applied(
    widget('parts', { size: 'small', parts: [{ name: 'b', count: 2 }] }),
    '--server-side',
    '--field-manager=other',
  ),
  shop('get widget parts -o yaml --show-managed-fields'),
  shop('scale widget small --replicas=4'),
  shopArgs([
    'patch',
    'widget',
    'small',
    '--subresource=status',
    '--type=merge',
    '-p',
    '{"status":{"replicas":4,"conditions":[{"type":"Ready","status":"True"}]}}',
  ]),
  shop('wait --for=condition=Ready widget/small --timeout=10s'),
  shop('get widgets'),
  shopArgs(['patch', 'widget', 'small', '--type=strategic', '-p', '{"spec":{"size":"large"}}']),

  // Help on types.
  step('explain deployment.spec.strategy'),
  step('explain pod.spec.containers.resources'),
  step('explain pod.spec.nothing'),
  step('explain nothing'),
  step('explain configmap --recursive'),

  // Nodes, which are only objects here.
  step('apply -f -', { stdin: JSON.stringify(node) }),
  step('get nodes'),
  step('get nodes -o wide'),
  step('cordon worker'),
  step('taint nodes worker dedicated=shop:NoSchedule'),
  step('get node worker -o jsonpath={.spec}', { difference: 'node-taint' }),
  step('uncordon worker'),
  step('describe node worker', { difference: 'node-taint' }),
  step('drain worker --force'),
  step('delete node worker'),

  // Many at once.
  shop('apply -f -', {
    stdin: `${JSON.stringify(configMap('first', { a: '1' }, label))}\n---\n${JSON.stringify(configMap('second', { a: '2' }, label))}`,
  }),
  shop('apply -f -', {
    stdin: JSON.stringify({ apiVersion: 'v1', kind: 'List', items: [configMap('first', { a: '3' }, label)] }),
  }),
  shop('apply --prune -l set=many -f -', { stdin: JSON.stringify(configMap('second', { a: '2' }, label)) }),
  shop('get configmaps -l set=many -o name'),
  shop('annotate configmaps -l set=many note=x'),
  shop('get configmaps -l set=many -L set -o wide'),
  shop('get configmaps -A -l set=many'),
  shop('delete -f -', { stdin: JSON.stringify(configMap('second', { a: '2' }, label)) }),
  shop('create -f -', {
    stdin: JSON.stringify({
      apiVersion: 'v1',
      kind: 'Secret',
      metadata: { name: 'typed' },
      type: 'kubernetes.io/tls',
      data: {},
    }),
  }),
  shop('create -f -', {
    stdin: JSON.stringify({ apiVersion: 'v1', kind: 'Secret', metadata: { name: 'typed' }, data: { a: '***' } }),
  }),
  shop('create -f -', {
    stdin: JSON.stringify({ ...pod('elsewhere'), metadata: { name: 'elsewhere', namespace: 'other' } }),
  }),
  shop('create -f -', {
    stdin: JSON.stringify({
      apiVersion: 'v1',
      kind: 'ConfigMap',
      metadata: { name: 'owned', labels: { 'a b': 'c' }, finalizers: ['x'] },
    }),
  }),
  shop('create service nodeport outside --tcp=80:8080'),
  shop('create service externalname far --external-name=shop.example'),
  shop('get services'),
  shop('create -f -', {
    stdin: JSON.stringify({ apiVersion: 'v1', kind: 'Service', metadata: { name: 'portless' }, spec: {} }),
  }),
  step('create clusterrolebinding alice-views --clusterrole=view --user=alice'),
  step('describe clusterrolebinding alice-views'),
  step('get nodes', { user: 'alice' }),
  step('delete clusterrolebinding alice-views'),
  shop('rollout restart deployment/web'),
  shop('rollout status deployment/web --timeout=1s'),
  shop('rollout pause deployment/web'),
  shop('events'),
  shop('get deployment web --watch-only --request-timeout=1s'),
  step('get namespaces -o wide --show-labels --no-headers'),
  step('get clusterroles admin edit view -o name'),
  step('get pods --all-namespaces --field-selector metadata.namespace=nowhere'),
  step('get pods -A --field-selector spec.something=x'),
  step('get priorityclasses --sort-by=.value --no-headers'),

  // Replace, wait, delete.
  shopArgs(['replace', '-f', '-'], { stdin: JSON.stringify(configMap('settings', { replaced: 'yes' })) }),
  shopArgs(['replace', '-f', '-'], {
    stdin: JSON.stringify(configMap('settings', { a: 'b' }, { resourceVersion: '1' })),
  }),
  shopArgs(['replace', '-f', '-'], { stdin: JSON.stringify(configMap('missing', { a: 'b' })) }),
  shopArgs(['create', '-f', '-'], {
    stdin: JSON.stringify({ apiVersion: 'v1', kind: 'ConfigMap', metadata: { generateName: 'generated-' } }),
  }),
  shop('wait --for=jsonpath={.data.replaced}=yes configmap/settings --timeout=5s'),
  shop('wait --for=condition=Available deployment/web --timeout=1s'),
  shop('wait --for=delete configmap/missing --timeout=5s'),
  shop('delete configmap settings --dry-run=server'),
  shop('delete configmap settings'),
  shop('delete configmap settings'),
  shop('delete configmap settings --ignore-not-found'),
  shop('delete pod single job-like --now'),
  shop('delete deployment,service web'),
  shop('delete widgets --all'),
  step('delete crd widgets.shop.example'),
  shop('get widgets'),
  step('delete clusterrole node-reader'),
  step('delete namespace shop --wait=false'),
  step('delete namespace default'),
];
