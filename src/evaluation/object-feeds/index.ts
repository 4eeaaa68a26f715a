// The objects of a cluster that evaluation looks up. An entry of its own: a server for a policies file loads nothing of clusters.
export { isOutage } from './namespace-feed.ts';
export { NamespaceRecord } from './namespace-record.ts';
export { ObjectFeeds } from './object-feeds.ts';
export { mayReadNamespace, objectNeeds, specParameters } from './object-needs.ts';
export { ExceptionFeed } from './exception-feed.ts';
export type { PolicyUids } from './exception-feed.ts';
export type { ChangedNeeds } from './object-needs.ts';
export { failureOf, textIn, withText } from './parameter-object.ts';
