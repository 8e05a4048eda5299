//! Element types of DLPack.

use inlay_core::DType;

use super::abi::DLDataType;

const INT: u8 = 0;
const UINT: u8 = 1;
const FLOAT: u8 = 2;
const BFLOAT: u8 = 4;
const COMPLEX: u8 = 5;
const BOOL: u8 = 6;

impl From<DType> for DLDataType {
    fn from(dtype: DType) -> Self {
        let code = match dtype {
            DType::Bool => BOOL,
            DType::I8 | DType::I16 | DType::I32 | DType::I64 => INT,
            DType::U8 | DType::U16 | DType::U32 | DType::U64 => UINT,
            DType::F16 | DType::F32 | DType::F64 => FLOAT,
            DType::BF16 => BFLOAT,
            DType::C64 | DType::C128 => COMPLEX,
        };
        DLDataType { code, bits: dtype.size() as u8 * 8, lanes: 1 }
    }
}

impl DLDataType {
    /// The dtype with the same meaning, if there is one.
    ///
    /// ```
    /// # use inlay::{DType, interop::dlpack::DLDataType};
    /// assert_eq!(DLDataType::from(DType::BF16).dtype(), Some(DType::BF16));
    /// ```
    pub fn dtype(self) -> Option<DType> {
        Some(match (self.code, self.bits) {
            _ if self.lanes != 1 => return None,
            (BOOL, 8) => DType::Bool,
            (INT, 8) => DType::I8,
            (INT, 16) => DType::I16,
            (INT, 32) => DType::I32,
            (INT, 64) => DType::I64,
            (UINT, 8) => DType::U8,
            (UINT, 16) => DType::U16,
            (UINT, 32) => DType::U32,
            (UINT, 64) => DType::U64,
            (FLOAT, 16) => DType::F16,
            (FLOAT, 32) => DType::F32,
            (FLOAT, 64) => DType::F64,
            (BFLOAT, 16) => DType::BF16,
            (COMPLEX, 64) => DType::C64,
            (COMPLEX, 128) => DType::C128,
            _ => return None,
        })
    }

    /// The name for error messages, such as `8-bit float`. A type without a name is given by its
    /// code.
    ///
    /// ```
    /// # use inlay::{DType, interop::dlpack::DLDataType};
    /// assert!(DLDataType::from(DType::F32).describe().contains("float"));
    /// ```
    pub fn describe(self) -> String {
        let DLDataType { code, bits, lanes } = self;
        let kind = match code {
            INT => "int",
            UINT => "uint",
            FLOAT => "float",
            BFLOAT => "bfloat",
            COMPLEX => "complex",
            BOOL => "bool",
            _ => return format!("DLPack type code {code} of {bits} bits"),
        };
        match lanes {
            1 => format!("{bits}-bit {kind}"),
            _ => format!("{lanes} lanes of {bits}-bit {kind}"),
        }
    }
}
