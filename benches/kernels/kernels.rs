//! What `benches/kernels` measures without Python on either side.
//!
//! `kernels RAW ITEMSIZE EDGE THREADS zarrs` times each of our kernels and the codec of zarrs on the same bytes, on one
//! thread: RAW is a file of elements, cut into chunks of EDGE cubed. `... loop` times a plain loop over libzstd's
//! functions with one context per thread: chunks are decoded into one array, one after the other, and encoded into
//! memory that is used again. Prints JSON: seconds for all chunks,
//! the best of several runs of both in turn.

#![allow(missing_docs, reason = "a program")]

use std::collections::HashMap;
use std::num::NonZeroU64;
use std::sync::Mutex;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::thread;
use std::time::{Duration, Instant};

use _native::chain::{self, Stage};
use _native::copy::{Element, copy};
use _native::entries::Layout;
use _native::kernels::{Contexts, Kernel};
use _native::place::{Direction, Place};
use _native::worker::Memory;
use zarrs::array::{ArrayBytes, ArrayToBytesCodecTraits, CodecChain, CodecOptions, DataType, FillValue};
use zarrs::metadata::v3::MetadataV3;
use zstd_safe::{CCtx, CParameter, DCtx, compress_bound};

const RUNS: usize = 7;
const LEVEL: i32 = 3;

const LITTLE: &str = r#"{"name":"bytes","configuration":{"endian":"little"}}"#;
const PCODEC: &str = r#"{"name":"numcodecs.pcodec","configuration":{"level":8,"mode_spec":"auto","delta_spec":"auto","delta_encoding_order":null,"paging_spec":"equal_pages_up_to","equal_pages_up_to":262144}}"#;

/// A codec: its name, the kernel and its options, and zarrs' metadata.
struct Case {
    name: &'static str,
    kernel: &'static str,
    options: &'static [(&'static str, i64)],
    metadata: &'static str,
}

const CASES: &[Case] = &[
    Case {
        name: "zstd 3",
        kernel: "zstd",
        options: &[("level", 3), ("checksum", 0)],
        metadata: r#"{"name":"zstd","configuration":{"level":3,"checksum":false}}"#,
    },
    Case {
        name: "gzip 5",
        kernel: "gzip",
        options: &[("level", 5)],
        metadata: r#"{"name":"gzip","configuration":{"level":5}}"#,
    },
    Case {
        name: "zlib",
        kernel: "zlib",
        options: &[("level", 1)],
        metadata: r#"{"name":"numcodecs.zlib","configuration":{"level":1}}"#,
    },
    Case {
        name: "blosc lz4 shuffle",
        kernel: "blosc",
        options: &[("compressor", 1), ("clevel", 5), ("shuffle", 1), ("typesize", 2), ("blocksize", 0)],
        metadata: r#"{"name":"blosc","configuration":{"cname":"lz4","clevel":5,"shuffle":"shuffle","typesize":2,"blocksize":0}}"#,
    },
    Case {
        name: "blosc zstd bitshuffle",
        kernel: "blosc",
        options: &[("compressor", 5), ("clevel", 3), ("shuffle", 2), ("typesize", 2), ("blocksize", 0)],
        metadata: r#"{"name":"blosc","configuration":{"cname":"zstd","clevel":3,"shuffle":"bitshuffle","typesize":2,"blocksize":0}}"#,
    },
    Case {
        name: "bz2",
        kernel: "bz2",
        options: &[("level", 1)],
        metadata: r#"{"name":"numcodecs.bz2","configuration":{"level":1}}"#,
    },
    Case { name: "crc32c", kernel: "crc32c", options: &[("start", 0)], metadata: r#"{"name":"crc32c"}"# },
    Case {
        name: "adler32",
        kernel: "adler32",
        options: &[("start", 1)],
        metadata: r#"{"name":"numcodecs.adler32","configuration":{"location":"start"}}"#,
    },
    Case {
        name: "fletcher32",
        kernel: "fletcher32",
        options: &[],
        metadata: r#"{"name":"numcodecs.fletcher32","configuration":{}}"#,
    },
    Case {
        name: "shuffle",
        kernel: "shuffle",
        options: &[("elementsize", 2)],
        metadata: r#"{"name":"numcodecs.shuffle","configuration":{"elementsize":2}}"#,
    },
    Case { name: "pcodec", kernel: "pcodec", options: &[], metadata: PCODEC },
];

fn main() {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let [raw, itemsize, edge, threads, what] = arguments.as_slice() else {
        eprintln!("usage: kernels RAW ITEMSIZE EDGE THREADS zarrs|loop");
        std::process::exit(2);
    };
    let number = |text: &String| text.parse::<usize>().expect("a number");
    let data = std::fs::read(raw).expect("a file of elements");
    let (itemsize, edge) = (number(itemsize), number(edge));
    let chunks: Vec<&[u8]> = data.chunks_exact(itemsize * edge.pow(3)).collect();
    if what == "loop" {
        plain_loop(&chunks, number(threads));
    } else {
        against_zarrs(&chunks, edge as u64);
    }
}

/// The best time of each of two calls, which take turns.
fn best(mut calls: [&mut dyn FnMut(); 2]) -> [f64; 2] {
    let mut times = [f64::INFINITY; 2];
    for _ in 0..RUNS {
        for (time, call) in times.iter_mut().zip(&mut calls) {
            *time = time.min(timed(call).as_secs_f64());
        }
    }
    times
}

fn timed(call: &mut dyn FnMut()) -> Duration {
    let begin = Instant::now();
    call();
    begin.elapsed()
}

fn report(name: &str, way: &str, [ours, theirs]: [f64; 2]) {
    println!(r#"{{"name":"{name}","way":"{way}","ours":{ours},"zarrs":{theirs}}}"#);
}

fn against_zarrs(chunks: &[&[u8]], edge: u64) {
    bytes_and_transpose(chunks, edge);
    let data_type = DataType::from_metadata(&MetadataV3::new("uint16")).expect("a data type");
    let shape = [NonZeroU64::new(edge).expect("an edge"); 3];
    for case in CASES {
        let text = if case.kernel == "pcodec" { format!("{PCODEC}\nuint16") } else { String::new() };
        let options: HashMap<String, i64> =
            case.options.iter().map(|(key, value)| ((*key).to_owned(), *value)).collect();
        let kernel = Kernel::new(case.kernel, &options, &text).expect("a kernel");
        let metadata: Vec<MetadataV3> = if case.kernel == "pcodec" {
            vec![MetadataV3::try_from(case.metadata).expect("metadata")]
        } else {
            [LITTLE, case.metadata].map(|text| MetadataV3::try_from(text).expect("metadata")).to_vec()
        };
        let chain = CodecChain::from_metadata(&metadata).expect("a codec");
        let theirs = Theirs { chain, data_type: data_type.clone(), shape: &shape };
        one_case(case.name, &kernel, &theirs, chunks);
    }
}

/// A chain of zarrs for chunks of one form.
struct Theirs<'a> {
    chain: CodecChain,
    data_type: DataType,
    shape: &'a [NonZeroU64],
}

impl Theirs<'_> {
    fn options() -> CodecOptions {
        CodecOptions::default().with_concurrent_target(1)
    }

    fn encode(&self, chunk: &[u8]) -> Vec<u8> {
        let fill = FillValue::new(vec![0; 2]);
        let bytes = ArrayBytes::from(chunk);
        let made = self.chain.encode(bytes, self.shape, &self.data_type, &fill, &Self::options());
        made.expect("encoded").into_owned()
    }

    fn decode(&self, encoded: &[u8]) -> Vec<u8> {
        let fill = FillValue::new(vec![0; 2]);
        let bytes = self.chain.decode(encoded.into(), self.shape, &self.data_type, &fill, &Self::options());
        bytes.expect("decoded").into_fixed().expect("fixed").into_owned()
    }
}

fn one_case(name: &str, kernel: &Kernel, theirs: &Theirs<'_>, chunks: &[&[u8]]) {
    let (mut contexts, mut front, mut back) = (Contexts::default(), Memory::default(), Memory::default());
    let stage = Stage { name: name.to_owned(), kernel: kernel.clone(), exact: None, most: usize::MAX };
    let mut out = vec![0; chunks[0].len()];
    let mut encode = |chunk: &[u8]| {
        chain::encode(std::slice::from_ref(&stage), chunk, &mut front, &mut back, &mut contexts)
            .unwrap_or_else(|fault| panic!("{}", fault.message))
    };
    let encoded: Vec<Vec<u8>> = chunks.iter().map(|chunk| encode(chunk)).collect();
    let mut ours_twice = || chunks.iter().for_each(|chunk| drop(std::hint::black_box(encode(chunk))));
    let mut theirs_twice = || chunks.iter().for_each(|chunk| drop(std::hint::black_box(theirs.encode(chunk))));
    report(name, "encode", best([&mut ours_twice, &mut theirs_twice]));
    let mut contexts = Contexts::default();
    let mut decode = |encoded: &[u8]| {
        kernel.decode_exact(&mut contexts, encoded, &mut out).unwrap_or_else(|fault| panic!("{}", fault.message));
        std::hint::black_box(&out);
    };
    let mut ours = || encoded.iter().for_each(|encoded| decode(encoded));
    let mut others = || encoded.iter().for_each(|encoded| drop(std::hint::black_box(theirs.decode(encoded))));
    report(name, "decode", best([&mut ours, &mut others]));
}

/// Byte order and order of axes have no kernels of their own: they are strides of one copy.
fn bytes_and_transpose(chunks: &[&[u8]], edge: u64) {
    let data_type = DataType::from_metadata(&MetadataV3::new("uint16")).expect("a data type");
    let shape = [NonZeroU64::new(edge).expect("an edge"); 3];
    let extent = usize::try_from(edge).expect("an edge");
    let step = |power: u32| (2 * extent.pow(power)).cast_signed();
    let plain = Layout { shape: vec![extent; 3], strides: vec![step(2), step(1), step(0)] };
    let turned = Layout { shape: vec![extent; 3], strides: vec![step(0), step(1), step(2)] };
    let transpose = r#"{"name":"transpose","configuration":{"order":[2,1,0]}}"#;
    let big = r#"{"name":"bytes","configuration":{"endian":"big"}}"#;
    for (name, codecs, stored, unit) in [
        ("bytes", vec![LITTLE], &plain, 1),
        ("bytes, big endian", vec![big], &plain, 2),
        ("transpose", vec![transpose, LITTLE], &turned, 1),
    ] {
        let metadata: Vec<_> = codecs.iter().map(|text| MetadataV3::try_from(*text).expect("metadata")).collect();
        let chain = CodecChain::from_metadata(&metadata).expect("a codec");
        let theirs = Theirs { chain, data_type: data_type.clone(), shape: &shape };
        let mut out = vec![0_u8; chunks[0].len()];
        for (way, direction) in [("encode", Direction::Gather), ("decode", Direction::Scatter)] {
            let mut place = Place::default();
            place.whole(stored, &plain, direction);
            let mut ours = || {
                for chunk in chunks {
                    // SAFETY: both have the shape that the place is about.
                    #[allow(unsafe_code)]
                    unsafe {
                        copy(&place, Element { size: 2, unit }, chunk.as_ptr(), out.as_mut_ptr());
                    };
                    std::hint::black_box(&out);
                }
            };
            let mut others = || {
                for chunk in chunks {
                    let made = if way == "encode" { theirs.encode(chunk) } else { theirs.decode(chunk) };
                    drop(std::hint::black_box(made));
                }
            };
            report(name, way, best([&mut ours, &mut others]));
        }
    }
}

fn plain_loop(chunks: &[&[u8]], threads: usize) {
    let compressed: Vec<Vec<u8>> = chunks
        .iter()
        .map(|chunk| {
            let mut made = Vec::with_capacity(compress_bound(chunk.len()));
            zstd_safe::compress(&mut made, chunk, LEVEL).expect("compressed");
            made
        })
        .collect();
    let next = AtomicUsize::new(0);
    let take = || Some(next.fetch_add(1, Ordering::Relaxed)).filter(|number| *number < chunks.len());
    let mut encode = || {
        next.store(0, Ordering::Relaxed);
        thread::scope(|scope| {
            for _ in 0..threads {
                scope.spawn(|| {
                    let mut context = CCtx::create();
                    context.set_parameter(CParameter::CompressionLevel(LEVEL)).expect("a level");
                    let mut scratch = vec![0_u8; compress_bound(chunks[0].len())];
                    while let Some(number) = take() {
                        context.compress2(scratch.as_mut_slice(), chunks[number]).expect("compressed");
                    }
                });
            }
        });
    };
    let mut array = vec![0_u8; chunks.len() * chunks[0].len()];
    let slots: Vec<Mutex<&mut [u8]>> = array.chunks_exact_mut(chunks[0].len()).map(Mutex::new).collect();
    let mut decode = || {
        next.store(0, Ordering::Relaxed);
        thread::scope(|scope| {
            for _ in 0..threads {
                scope.spawn(|| {
                    let mut context = DCtx::create();
                    while let Some(number) = take() {
                        let mut slot = slots[number].lock().expect("a slot");
                        context.decompress(&mut slot[..], &compressed[number]).expect("decompressed");
                    }
                });
            }
        });
    };
    let [encode, decode] = best([&mut encode, &mut decode]);
    println!(r#"{{"encode":{encode},"decode":{decode},"chunks":{}}}"#, chunks.len());
}
