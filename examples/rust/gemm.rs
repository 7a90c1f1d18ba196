// SPDX-License-Identifier: MIT
//
// gemm.rs: the library from Rust, with nothing but std and rustc.
//
//     rustc --edition 2021 -O examples/rust/gemm.rs -L build -C link-arg=-Wl,-rpath,$PWD/build
//
// The C header by hand (`mod ffi`), a safe face over it, and what a layer of a model computes, bf16
// D = A * B^T + bias with scalars in device memory and linear scales of A, on the first GPU,
// compared with the library's CPU reference. Without a GPU that runs the kernels it says so.

use std::ffi::{c_char, c_int, c_void, CStr};

/// include/nvfp4_gemm.h, as far as it is used here: a struct may be shorter than the library's.
mod ffi {
    use std::ffi::{c_char, c_int, c_void};

    #[repr(C)]
    pub struct GemmDesc {
        pub struct_size: u64,
        pub m: i64,
        pub n: i64,
        pub k: i64,
        pub l: i64,
        pub a: *const c_void,
        pub a_ld: i64,
        pub a_batch_stride: i64,
        pub a_scales: *const c_void,
        pub a_scales_batch_stride_bytes: i64,
        pub a_tensor_scale: *const f32,
        pub b: *const c_void,
        pub b_ld: i64,
        pub b_batch_stride: i64,
        pub b_scales: *const c_void,
        pub b_scales_batch_stride_bytes: i64,
        pub b_tensor_scale: *const f32,
        pub b_tensor_scale_columns: i64,
        pub c: *const c_void,
        pub c_ld: i64,
        pub c_batch_stride: i64,
        pub d: *mut c_void,
        pub d_ld: i64,
        pub d_batch_stride: i64,
        pub d_scales: *mut c_void,
        pub d_scales_batch_stride_bytes: i64,
        pub d_tensor_scale: *const f32,
        pub bias: *const c_void,
        pub alpha_device: *const f32,
        pub beta_device: *const f32,
        pub alpha: f32,
        pub beta: f32,
        pub workspace: *mut c_void,
        pub workspace_bytes: u64,
        pub variant: *const c_char,
        pub a_scale_layout: i32,
        pub b_scale_layout: i32,
        pub d_scale_layout: i32,
        pub c_type: i32,
        pub d_type: i32,
        pub bias_type: i32,
        pub scalar_mode: i32,
        pub activation: i32,
        pub pdl: i32,
        pub operand_format: i32,
        pub a_type: i32,
        pub cd_order: i32,
        pub bias_axis: i32,
        pub batch_invariant: i32,
        pub a_tensor_scale_rows: i32,
        pub d_scale_rule: i32,
        pub reserved: [i32; 2],
    }

    pub const SUCCESS: i32 = 0;
    pub const UNSUPPORTED_ARCH: i32 = 44;
    pub const LAYOUT_128X4: i32 = 1;
    pub const LAYOUT_LINEAR: i32 = 2;
    pub const TYPE_BF16: i32 = 2;
    pub const TYPE_F32: i32 = 3;
    pub const SCALARS_DEVICE: i32 = 1;

    #[link(name = "nvfp4gemm")]
    extern "C" {
        pub fn nvfp4_build_info() -> *const c_char;
        pub fn nvfp4_status_name(status: i32) -> *const c_char;
        pub fn nvfp4_last_error() -> *const c_char;
        pub fn nvfp4_gemm_run(desc: *const GemmDesc, stream: *mut c_void) -> i32;
        pub fn nvfp4_gemm_workspace_bytes(
            desc: *const GemmDesc,
            compute_capability: i32,
            bytes: *mut u64,
        ) -> i32;
        pub fn nvfp4_gemm_reference(desc: *const GemmDesc) -> i32;
        pub fn nvfp4_scale_bytes(rows: i64, k: i64, layout: i32) -> usize;
        pub fn nvfp4_quantize_host(
            x: *const f32,
            x_ld: i64,
            rows: i64,
            k: i64,
            tensor_scale: f32,
            codes: *mut c_void,
            codes_ld: i64,
            scales: *mut c_void,
            scale_layout: i32,
        ) -> i32;
    }

    extern "C" {
        pub fn dlopen(name: *const c_char, flags: c_int) -> *mut c_void;
        pub fn dlsym(library: *mut c_void, name: *const c_char) -> *mut c_void;
    }
}

/// A failed call: its status and the library's sentence.
#[derive(Debug)]
struct Error {
    status: i32,
    text: String,
}

fn text(pointer: *const c_char) -> String {
    // SAFETY: the library returns strings that are never NULL and end with NUL.
    unsafe { CStr::from_ptr(pointer) }.to_string_lossy().into_owned()
}

fn check(status: i32) -> Result<(), Error> {
    if status == ffi::SUCCESS {
        return Ok(());
    }
    // SAFETY: no preconditions.
    let (name, sentence) = unsafe { (ffi::nvfp4_status_name(status), ffi::nvfp4_last_error()) };
    Err(Error { status, text: format!("{}: {}", text(name), text(sentence)) })
}

/// A matrix [rows, k] in NVFP4: value = code * scale * tensor_scale.
struct Matrix {
    codes: Vec<u8>,
    scales: Vec<u8>,
    rows: i64,
    k: i64,
    tensor_scale: f32,
    layout: i32, // of the scales
}

impl Matrix {
    fn quantize(x: &[f32], rows: usize, k: usize, layout: i32) -> Result<Matrix, Error> {
        assert_eq!(x.len(), rows * k);
        let amax = x.iter().fold(0f32, |m, v| m.max(v.abs()));
        let (rows, k) = (rows as i64, k as i64);
        // SAFETY: no pointers.
        let scale_bytes = unsafe { ffi::nvfp4_scale_bytes(rows, k, layout) };
        let mut q = Matrix {
            codes: vec![0; x.len() / 2],
            scales: vec![0; scale_bytes],
            rows,
            k,
            tensor_scale: amax / 2688.0, // 448 * 6
            layout,
        };
        // SAFETY: every buffer has the size that the header asks for.
        check(unsafe {
            ffi::nvfp4_quantize_host(
                x.as_ptr(),
                k,
                rows,
                k,
                q.tensor_scale,
                q.codes.as_mut_ptr().cast(),
                k,
                q.scales.as_mut_ptr().cast(),
                layout,
            )
        })?;
        Ok(q)
    }
}

/// D = A * B^T + bias: what multiplies it lies in memory that whoever computes reads, `ONE` too.
struct Layer {
    a: Matrix,
    b: Matrix,
    bias: Vec<f32>,
}

static ONE: f32 = 1.0;

impl Layer {
    /// Sizes, types and layouts; no address.
    fn describe(&self) -> ffi::GemmDesc {
        let (a, b) = (&self.a, &self.b);
        // SAFETY: numbers and pointers; all zero is NVFP4_GEMM_DESC_INIT but for the size.
        let mut g: ffi::GemmDesc = unsafe { std::mem::zeroed() };
        g.struct_size = std::mem::size_of::<ffi::GemmDesc>() as u64;
        (g.m, g.n, g.k, g.l) = (a.rows, b.rows, a.k, 1);
        (g.a_ld, g.b_ld, g.d_ld) = (a.k, b.k, b.rows);
        (g.a_scale_layout, g.b_scale_layout) = (a.layout, b.layout);
        (g.d_type, g.bias_type) = (ffi::TYPE_BF16, ffi::TYPE_F32);
        g.scalar_mode = ffi::SCALARS_DEVICE;
        g
    }

    fn new_result(&self) -> Vec<u16> {
        vec![0; (self.a.rows * self.b.rows) as usize]
    }

    /// On the CPU, bf16 bits.
    fn reference(&self) -> Result<Vec<u16>, Error> {
        let (a, b, mut d) = (&self.a, &self.b, self.new_result());
        let mut g = self.describe();
        (g.a, g.a_scales) = (a.codes.as_ptr().cast(), a.scales.as_ptr().cast());
        (g.b, g.b_scales) = (b.codes.as_ptr().cast(), b.scales.as_ptr().cast());
        (g.a_tensor_scale, g.b_tensor_scale) = (&a.tensor_scale, &b.tensor_scale);
        (g.alpha_device, g.bias) = (&ONE, self.bias.as_ptr().cast());
        g.d = d.as_mut_ptr().cast();
        // SAFETY: host pointers to whole matrices that live until the call returns.
        check(unsafe { ffi::nvfp4_gemm_reference(&g) })?;
        Ok(d)
    }
}

/// The CUDA driver, as far as it is used here. A program that uses CUDA has its own.
struct Driver {
    library: *mut c_void,
}

impl Driver {
    /// None without a driver or a device; else the first device's context is current.
    fn open() -> Option<Driver> {
        const RTLD_NOW: c_int = 2;
        // SAFETY: a NUL-terminated name.
        let library = unsafe { ffi::dlopen(c"libcuda.so.1".as_ptr(), RTLD_NOW) };
        if library.is_null() {
            return None;
        }
        let driver = Driver { library };
        let mut context: *mut c_void = std::ptr::null_mut();
        // SAFETY: the driver's own signatures.
        unsafe {
            let init: extern "C" fn(u32) -> c_int = driver.find(c"cuInit");
            let retain: extern "C" fn(*mut *mut c_void, c_int) -> c_int =
                driver.find(c"cuDevicePrimaryCtxRetain");
            let set: extern "C" fn(*mut c_void) -> c_int = driver.find(c"cuCtxSetCurrent");
            (init(0) == 0 && retain(&mut context, 0) == 0 && set(context) == 0).then_some(driver)
        }
    }

    /// SAFETY: F is the function's type.
    unsafe fn find<F: Copy>(&self, name: &CStr) -> F {
        let symbol = ffi::dlsym(self.library, name.as_ptr());
        assert!(!symbol.is_null(), "the driver has no {name:?}");
        std::mem::transmute_copy(&symbol)
    }

    fn upload<T>(&self, content: &[T]) -> u64 {
        let (mut address, bytes) = (0u64, std::mem::size_of_val(content));
        // SAFETY: the driver's own signatures; content has so many bytes.
        unsafe {
            let alloc: extern "C" fn(*mut u64, usize) -> c_int = self.find(c"cuMemAlloc_v2");
            let copy: extern "C" fn(u64, *const c_void, usize) -> c_int =
                self.find(c"cuMemcpyHtoD_v2");
            assert_eq!(alloc(&mut address, bytes), 0, "cuMemAlloc failed");
            assert_eq!(copy(address, content.as_ptr().cast(), bytes), 0, "cuMemcpyHtoD failed");
        }
        address
    }

    /// 10 * major + minor of the first device.
    fn compute_capability(&self) -> i32 {
        // SAFETY: the driver's own signature; 75 and 76 are those of the compute capability.
        unsafe {
            let attribute: extern "C" fn(*mut c_int, c_int, c_int) -> c_int =
                self.find(c"cuDeviceGetAttribute");
            let (mut major, mut minor) = (0, 0);
            assert_eq!(attribute(&mut major, 75, 0), 0, "cuDeviceGetAttribute failed");
            assert_eq!(attribute(&mut minor, 76, 0), 0, "cuDeviceGetAttribute failed");
            10 * major + minor
        }
    }

    /// Waits for the work before.
    fn download(&self, address: u64, to: &mut [u16]) {
        // SAFETY: as above.
        unsafe {
            let copy: extern "C" fn(*mut c_void, u64, usize) -> c_int =
                self.find(c"cuMemcpyDtoH_v2");
            let bytes = std::mem::size_of_val(to);
            assert_eq!(copy(to.as_mut_ptr().cast(), address, bytes), 0, "cuMemcpyDtoH failed");
        }
    }
}

fn on_device(driver: &Driver, layer: &Layer) -> Result<Vec<u16>, Error> {
    let (a, b, mut d) = (&layer.a, &layer.b, layer.new_result());
    let mut g = layer.describe();
    (g.a, g.a_scales) = (driver.upload(&a.codes) as _, driver.upload(&a.scales) as _);
    (g.b, g.b_scales) = (driver.upload(&b.codes) as _, driver.upload(&b.scales) as _);
    g.a_tensor_scale = driver.upload(&[a.tensor_scale]) as _;
    g.b_tensor_scale = driver.upload(&[b.tensor_scale]) as _;
    (g.alpha_device, g.bias) = (driver.upload(&[ONE]) as _, driver.upload(&layer.bias) as _);
    let address = driver.upload(&d);
    g.d = address as _;
    // On Hopper many tokens need a workspace, and linear scales on Blackwell.
    let mut bytes = 0u64;
    // SAFETY: looks at the numbers and addresses of `g`, reads nothing at them.
    check(unsafe { ffi::nvfp4_gemm_workspace_bytes(&g, driver.compute_capability(), &mut bytes) })?;
    if bytes > 0 {
        (g.workspace, g.workspace_bytes) = (driver.upload(&vec![0u8; bytes as usize]) as _, bytes);
    }
    // SAFETY: device memory of the right sizes; NULL is the default stream.
    check(unsafe { ffi::nvfp4_gemm_run(&g, std::ptr::null_mut()) })?;
    driver.download(address, &mut d);
    Ok(d)
}

/// xorshift, in -1..1.
fn random(count: usize, seed: &mut u64) -> Vec<f32> {
    let mut next = || {
        *seed ^= *seed << 13;
        *seed ^= *seed >> 7;
        *seed ^= *seed << 17;
        (*seed >> 40) as f32 / (1 << 23) as f32 - 1.0
    };
    (0..count).map(|_| next()).collect()
}

/// Of bf16 bits.
fn value(bits: u16) -> f32 {
    f32::from_bits((bits as u32) << 16)
}

fn main() -> Result<(), Error> {
    // The header's struct, offset by offset (test/golden/abi.txt).
    assert_eq!(std::mem::size_of::<ffi::GemmDesc>(), 344);
    assert_eq!(std::mem::offset_of!(ffi::GemmDesc, variant), 264);
    assert_eq!(std::mem::offset_of!(ffi::GemmDesc, reserved), 336);

    let mut seed = 88172645463325252;
    let sizes: Vec<usize> = std::env::args().skip(1).map(|x| x.parse().expect("M N K")).collect();
    let (m, n, k) = if let [m, n, k] = sizes[..] { (m, n, k) } else { (70, 150, 256) };
    let layer = Layer {
        a: Matrix::quantize(&random(m * k, &mut seed), m, k, ffi::LAYOUT_LINEAR)?,
        b: Matrix::quantize(&random(n * k, &mut seed), n, k, ffi::LAYOUT_128X4)?,
        bias: random(n, &mut seed),
    };
    let expected = layer.reference()?;
    // SAFETY: no preconditions.
    println!("{}", text(unsafe { ffi::nvfp4_build_info() }));
    println!("reference: D[0][0] = {}", value(expected[0]));

    // A refusal is an Err with a sentence.
    let mut bad = layer.describe();
    bad.k = 200;
    // SAFETY: refused before any pointer is looked at.
    let refused = check(unsafe { ffi::nvfp4_gemm_run(&bad, std::ptr::null_mut()) });
    println!("a refused call: {}", refused.expect_err("k = 200 was accepted").text);

    let Some(driver) = Driver::open() else {
        println!("no CUDA driver or device here: only the CPU reference was computed");
        return Ok(());
    };
    let d = match on_device(&driver, &layer) {
        Err(error) if error.status == ffi::UNSUPPORTED_ARCH => {
            println!("{}: only the CPU reference was computed", error.text);
            return Ok(());
        }
        result => result?,
    };
    // A sum that the tensor core rounds otherwise may come to lie in the next number of bf16.
    let relative = |(x, y): (&u16, &u16)| (value(*x) - value(*y)).abs() / value(*y).abs().max(1.0);
    let worst = d.iter().zip(&expected).map(relative).fold(0f32, f32::max);
    println!("device:    D[0][0] = {}, largest relative difference {worst}", value(d[0]));
    assert!(worst <= 1.0 / 128.0, "the product is off");
    Ok(())
}
