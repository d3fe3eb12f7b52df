// A client of perceptrond, a server that learns perceptrons online. Messages of the API are objects in camelCase, as
// @grpc/proto-loader makes them: enums are names, 64-bit numbers are numbers (exact up to 2^53), absent figures are absent.

/** One of the model's names; or a number, -1 and +1 or of several classes the class from 0, but a name where one of the model's names is a
 * number, and where the model adds classes by name; equal numbers, also in texts, are one name. Of the examples of a call all the same. Of two labels 0 is read as -1, with a warning, unless it is a name; beside
 * -1 it is an error. */
export type Label = number | string;

/** Features by name, or in a Map by index, 0 to 2^32 - 1. Values are finite float32. */
export type Features = Record<string, number> | Map<string, number> | Map<number, number>;

/** Features; or for a model of texts a text; or, to learn a label that comes later, an id of Predictions. */
export type Input = { features: Features; text?: undefined; predictionId?: undefined } | { text: string; features?: undefined; predictionId?: undefined }
  | { predictionId: string; features?: undefined; text?: undefined };

export type Example = Input & {
  /** Required to learn, ignored by predictions. */
  label?: Label;
  /** Above 0 and finite; default 1. How much the example counts in an update. */
  weight?: number;
  /** The line of the file that it was read from, from 1, which errors name. */
  line?: number;
};

export type Examples = Iterable<Example> | AsyncIterable<Example>;

export interface PassSummary {
  number: number;
  examples: number;
  mistakes: number;
  updates: number;
  rowErrors: number;
  /** The pass made no update. */
  converged: boolean;
  margin?: number;
}

/** perceptron.v1.ConvergenceReport: report.proto says what each figure means. */
export interface ConvergenceReport {
  state: `CONVERGENCE_STATE_${'UNSPECIFIED' | 'LEARNING' | 'CONVERGED' | 'REFUTED' | 'NOT_SEPARABLE' | 'DRIFTING'}`;
  examples: number;
  mistakes: number;
  updates: number;
  streak: number;
  duplicates: number;
  lastPass?: PassSummary;
  [figure: string]: unknown;
}

/** What create() takes, as in model.proto. Ranges and defaults are there. */
export interface ModelSettings {
  featureSpace: { dense: { dimension: number } } | { hashed: { bits: number } } | { named: { maxFeatures?: number } } | { text: Record<string, unknown> } | Record<string, unknown>;
  /** That of -1 first; of several classes in their order. */
  labelNames?: string[];
  /** Default: the perceptron for two labels. */
  learner?: Record<string, unknown>;
  description?: string;
  marginOfInterest?: number;
  storedExamples?: Record<string, unknown>;
  storedPredictions?: Record<string, unknown>;
  /** The model is deleted once it was not used for this time. */
  expireAfter?: Duration;
}

export interface Duration {
  seconds: number;
  nanos?: number;
}

export interface Model extends Required<Pick<ModelSettings, 'featureSpace' | 'labelNames' | 'description' | 'marginOfInterest'>> {
  /** "models/spam" */
  name: string;
  uid: string;
  etag: string;
  state: 'MODEL_STATE_UNSPECIFIED' | 'MODEL_STATE_ACTIVE' | 'MODEL_STATE_FROZEN';
  /** The number of updates, which names a state of the weights. */
  revision: number;
  report: ConvergenceReport;
  [field: string]: unknown;
}

export interface Progress {
  /** From 1. */
  pass: number;
  /** The rows of this pass that were sent, those learned by an earlier run among them. */
  sent: number;
  /** The rows of a pass; absent for an iterator. */
  rows?: number;
  /** Over all answers that this call received. */
  examples: number;
  mistakes: number;
  updates: number;
  /** Present once the pass is complete. */
  lastPass?: PassSummary;
}

export interface LearnOptions {
  /**
   * The name of this sequence of examples, for good; 1 to 128 bytes. The server keeps its position, so that the same call,
   * after a failure of this program, learns the rest. Default: the examples are new, whatever was sent before.
   */
  producer?: string;
  /** At least 1. Default 1; with untilConverged the most, 1000. An iterator has one. */
  passes?: number;
  /** Stop after a pass without an update. Default false. */
  untilConverged?: boolean;
  /** The most rows of a message, 1 to 65,536. Default 1000. */
  batch?: number;
  /** The most unanswered examples. Default 8192. */
  window?: number;
  onProgress?: (now: Progress) => void;
}

/** Sums over the answers received; the model's report has those lost with a connection too. */
export interface Totals {
  examples: number;
  mistakes: number;
  updates: number;
  duplicates: number;
  rowErrors: number;
  /** Begins with "row 12", from 0, or "line 13" if Example.line is set. */
  firstRowError: string;
  lostAnswers: number;
}

export interface Learned {
  totals: Totals;
  /** The passes that the producer has completed. */
  passes: number;
  lastPass?: PassSummary;
}

/** A stream of a producer, for examples as they come. Every method throws what ended the stream. */
export interface ExampleStream {
  /** The number of the next example. After the open: the producer's position. */
  readonly nextOffset: number;
  /** Passes that the producer has completed. */
  readonly passes: number;
  readonly totals: Totals;
  /** Numbers and sends examples, 1 to 65,536, after the call before has ended; waits while the window is full. */
  send(examples: Iterable<Example>): Promise<void>;
  /** Marks the end of a pass over the data and waits for all answers. */
  endPass(): Promise<PassSummary>;
  /** Waits for all answers and ends the stream. */
  finish(): Promise<Totals>;
  /** Ends it at once. Unanswered examples may have been learned; sent again, they count once. */
  cancel(): Promise<void>;
}

export interface Predictions {
  /** Names, if the model has any; else numbers. */
  labels: Label[];
  scores: number[];
  /** Empty for learners without probabilities. */
  probabilities: number[];
  /** With classScores: the score of each class, for each example. */
  classScores: number[][];
  /** With ids: one an example, for Example.predictionId. */
  ids: string[];
  /** "models/spam": the model that predicted the last row. */
  model: string;
  /** The oldest state of that model that predicted a row. */
  revision: number;
}

export interface PredictOptions {
  ids?: boolean;
  classScores?: boolean;
  minRevision?: number;
}

/** perceptron.v1.PredictResponse. */
export interface PredictResponse {
  scores: number[];
  predictedLabels: number[];
  distances: number[];
  probabilities: number[];
  revision: number;
  /** "models/spam": the model that answered. */
  model: string;
  rowErrors: { row: number; status: { code: number; message: string } }[];
  [field: string]: unknown;
}

/** Of a model: a vector, or one for each class. indices or names are parallel to values. */
export interface Weights {
  vectors: { indices: number[]; names: string[]; values: number[]; bias: number }[];
}

/** perceptron.v1.AnalysisResult: analysis_service.proto says what each field means. */
export interface AnalysisResult {
  analysis: Record<string, unknown>;
  separatorMargin?: number;
  newRevision?: number;
  [field: string]: unknown;
}

export interface Alias {
  /** "aliases/prod" */
  name: string;
  /** "models/spam" */
  model: string;
  /** Empty: none. */
  previousModel: string;
  description: string;
  etag: string;
  [field: string]: unknown;
}

export interface Contestant {
  model: string;
  revision: number;
  examples: number;
  /** Mistakes per example. */
  error?: number;
}

/** Names for models that can be moved. An alias is "prod" or "aliases/prod". */
export interface Aliases {
  /** NOT_FOUND (ALIAS_NOT_FOUND). */
  get(alias: string): Promise<Alias>;
  /** In the order of their names. */
  list(): AsyncIterableIterator<Alias>;
  /** Has the alias name this model, and creates it if there is none. etag: of the alias that is to be moved, else ABORTED (ETAG_MISMATCH). NOT_FOUND (MODEL_NOT_FOUND). */
  set(alias: string, model: string, options?: { description?: string; etag?: string }): Promise<Alias>;
  /** Its model stays. NOT_FOUND (ALIAS_NOT_FOUND), unless missingOk; ABORTED (ETAG_MISMATCH). */
  delete(alias: string, options?: { missingOk?: boolean; etag?: string }): Promise<void>;
  /**
   * Moves the alias to the challenger, a model that learns the same examples, if that errs less. error: of the latest 1000 examples (default) or of all. margin: how much lower
   * its error must be; 0 to below 1. minExamples: of each, or the alias stays; default 100. validateOnly: move nothing. Sent once: after UNAVAILABLE it may have been moved.
   */
  challenge(alias: string, challenger: string, options?: { error?: 'window' | 'progressive'; margin?: number; minExamples?: number; etag?: string; validateOnly?: boolean }):
    Promise<{ alias: Alias; outcome: `CHALLENGE_OUTCOME_${'UNSPECIFIED' | 'CHALLENGER_WON' | 'CHAMPION_WON' | 'TOO_FEW_EXAMPLES'}`; champion: Contestant; challenger: Contestant }>;
}

export interface Snapshot {
  /** "models/spam/snapshots/before" */
  name: string;
  revision: number;
  sizeBytes: number;
  [field: string]: unknown;
}

/** A path, or the URL of a file. */
export type FilePath = string | { readonly href: string };

/** A stream of Node, as fs.createWriteStream() makes it. */
export interface WritableStream {
  write(piece: Uint8Array): boolean;
  end(): unknown;
  on(event: string, listener: (...values: any[]) => void): unknown;
}

/** How far exportModel() or importModel() is. */
export interface Transfer {
  /** From 0 again when a lost connection has the file begin again. */
  bytes: number;
  /** Of the whole file; absent while it is unknown. */
  total?: number;
  /** In the last call: the file is whole, or the model created. */
  complete: boolean;
}

/** Copies, files, names and kept states of models. Copies, lists and files by path are repeated when an answer is lost: after UNAVAILABLE the others may have been done. */
export interface History {
  /** Copies a model with all that it has. ALREADY_EXISTS (MODEL_EXISTS). */
  copy(model: string, newName: string): Promise<Model>;
  /** Its aliases follow, its streams end and resume under the new name. ALREADY_EXISTS (MODEL_EXISTS); ABORTED (ETAG_MISMATCH); FAILED_PRECONDITION (MODEL_IN_USE). */
  rename(model: string, newName: string, options?: { etag?: string }): Promise<Model>;
  /**
   * Writes a model to a file, as copy() would copy it, and resolves to its bytes: what `perceptronctl export` writes. file: a path without a file, which is there once it is
   * whole; or a stream, which is ended then, and destroyed by an error. A call takes at most 900 s, or Client's timeout if that is more.
   */
  exportModel(model: string, file: FilePath | WritableStream, options?: { onProgress?: (now: Transfer) => void }): Promise<number>;
  /**
   * Creates a model from such a file, also of another server. An error leaves no model. file: a path, or a stream or iterable of bytes. INVALID_ARGUMENT (BAD_MODEL_FILE);
   * ALREADY_EXISTS (MODEL_EXISTS).
   */
  importModel(model: string, file: FilePath | AsyncIterable<Uint8Array> | Iterable<Uint8Array>, options?: { onProgress?: (now: Transfer) => void }): Promise<Model>;
  /** Keeps the model's current state for rollBack(). ALREADY_EXISTS (SNAPSHOT_EXISTS); RESOURCE_EXHAUSTED (SNAPSHOT_LIMIT: a model keeps 16). */
  createSnapshot(model: string, snapshot: string): Promise<Snapshot>;
  /** Oldest first. */
  listSnapshots(model: string): Promise<Snapshot[]>;
  /** NOT_FOUND (SNAPSHOT_NOT_FOUND). */
  deleteSnapshot(model: string, snapshot: string): Promise<void>;
  /**
   * Gives a model the state of a snapshot, or of a revision from that of the oldest snapshot on, as a new revision. expectedRevision: only if the model is at this one, else
   * ABORTED (REVISION_MISMATCH). NOT_FOUND (SNAPSHOT_NOT_FOUND; REVISION_NOT_KEPT); FAILED_PRECONDITION (MODEL_FROZEN).
   */
  rollBack(model: string, to: ({ snapshot: string; revision?: undefined } | { revision: number; snapshot?: undefined }) & { expectedRevision?: number }): Promise<Model>;
}

/** Thrown for what a server answers or does not answer. Wrong arguments are RangeError. */
export class PerceptrondError extends Error {
  /** gRPC's: "NOT_FOUND". */
  readonly code: string;
  /** "MODEL_NOT_FOUND", ...; empty if no server answered. */
  readonly reason: string;
  /** The invalid fields by their path in the request. */
  readonly violations: { field: string; description: string }[];
}

/**
 * A connection to a server, or to the servers of a fleet. Calls are repeated while the server is unreachable or asks to
 * wait. Models are named "spam" or "models/spam"; to read, predict and learn also by an alias, "aliases/prod".
 */
export class Client {
  /**
   * server: host:port, by default port 7600; host:port,host:port,... of a fleet; or unix:path. Default: $PERCEPTROND_SERVER, else 127.0.0.1:7600. RangeError for what is none.
   * tlsCa: a file of certificate authorities to trust, with TLS. tokenFile: a file with a token to send, to this machine or
   * with TLS; default $PERCEPTRONCTL_TOKEN_FILE. giveUpAfter: seconds without progress before a call fails; default 60. A call that waits for 3 s warns. timeout: of one
   * attempt of a call, in seconds; default 30.
   */
  constructor(server?: string, options?: { tlsCa?: string; tokenFile?: string; giveUpAfter?: number; timeout?: number; onReconnect?: (error: PerceptrondError) => void });

  readonly aliases: Aliases;
  readonly history: History;

  /** Ends the connection. */
  close(): void;

  /** Creates a model. RangeError for a setting that the API does not have. ALREADY_EXISTS, unless existOk: then the existing model is returned as it is. */
  create(model: string, settings: ModelSettings, options?: { existOk?: boolean }): Promise<Model>;
  /** NOT_FOUND (MODEL_NOT_FOUND). */
  get(model: string): Promise<Model>;
  report(model: string): Promise<ConvergenceReport>;
  /** In the order of their names, without labelNames. */
  list(): AsyncIterableIterator<Model>;
  /** Changes what is given: expireAfter undefined: the model stays. etag: of the model that is to be changed, else ABORTED. */
  update(model: string, changes: { description?: string; marginOfInterest?: number; expireAfter?: Duration; etag?: string }): Promise<Model>;
  /** NOT_FOUND, unless missingOk. */
  delete(model: string, options?: { missingOk?: boolean }): Promise<void>;
  /** Ends learning, or allows it again. */
  freeze(model: string, frozen?: boolean): Promise<Model>;
  /** The weights that predict. FAILED_PRECONDITION (NOT_LINEAR); ABORTED (REVISION_MISMATCH) if the model learns meanwhile. */
  weights(model: string): Promise<Weights>;

  /**
   * Learns examples, each exactly once a pass, also across restarts of the server. Rows with validation errors are left out and counted, with a warning of the process; PerceptrondError if
   * that are all.
   */
  learn(model: string, examples: Examples, options?: LearnOptions): Promise<Learned>;
  /** Opens a stream of a producer, for examples as they come. window: the most unanswered examples; default 8192. */
  learnStream(model: string, producer: string, options?: { window?: number }): Promise<ExampleStream>;

  /**
   * Predicts examples by the model that an alias names when they come, with the labels of that model. Throws for the first row with a validation error. ids: the server keeps the features, if
   * the model has storedPredictions. classScores: of several classes, the score of each. minRevision: of the oldest state that may answer; ABORTED (REVISION_TOO_OLD).
   */
  predict(model: string, examples: Examples, options?: { batch?: number } & PredictOptions): Promise<Predictions>;
  /** Yields rows with their answer, in order, as they come; follows an alias at the next message. */
  predictStream(model: string, examples: Examples, options?: { batch?: number; window?: number } & PredictOptions): AsyncIterableIterator<[Example[], PredictResponse]>;
  /** What each feature contributes to the scores of at most 100 examples; maxFeatures: 1 to 10,000, default 20. */
  explain(model: string, examples: Examples, options?: { maxFeatures?: number }): Promise<{ explanations: Record<string, unknown>[]; revision: number }>;

  /** The model, without labelNames, now and whenever its report has changed, until it is deleted (NOT_FOUND) or the timeout in seconds is over (DEADLINE_EXCEEDED). interval: at least 0.05 s, default 1. */
  watch(model: string, options?: { interval?: number; timeout?: number }): AsyncIterableIterator<Model>;
  /** The model, as watch yields it, once it has converged. An Error when the timeout in seconds is over. */
  waitUntilConverged(model: string, options?: { timeout?: number }): Promise<Model>;
  /**
   * The largest margin that any separator has on the stored examples, or a proof that none exists, or why neither was found; it enters the report. Sent once. replaceWeights: by
   * the separator that was found, with expectedRevision only at that revision (ABORTED, REVISION_MISMATCH). FAILED_PRECONDITION (NOTHING_STORED, KERNEL_SPACE,
   * ANALYSIS_TOO_LARGE; NO_SEPARATOR, NOT_REPLACEABLE).
   */
  analyze(model: string, options?: { replaceWeights?: boolean; expectedRevision?: number; timeLimit?: Duration; relativeGap?: number; maxRounds?: number; maxSupportVectors?: number;
    maxCertificateExamples?: number; onProgress?: (now: Record<string, unknown>) => void }): Promise<AnalysisResult>;
}
